// Package store keeps objects in a folder or in an S3 bucket behind one
// interface made for backups: an object exists whole or not at all.
package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/etcdkit/etcdkit/internal/hint"
)

// Causes that callers tell apart. Each comes wrapped in an error that says
// what was asked of which store, with a hint where there is a next step.
var (
	ErrConfig      = errors.New("wrong store configuration")
	ErrNotExist    = errors.New("no such object")
	ErrNoBucket    = errors.New("bucket does not exist")
	ErrDenied      = errors.New("permission denied")
	ErrUnreachable = errors.New("store not reachable")
	ErrTruncated   = errors.New("object ended early")
	// ErrForeign tells that something else than the store answered, such as a
	// proxy's or a load balancer's page. It says nothing about what is stored.
	ErrForeign = errors.New("the answer is not a store's")
	// ErrNoClock tells that a store gives no time.
	ErrNoClock = errors.New("the store does not tell its time")
)

// Object is one stored object. Its key is relative to the store's root and
// uses slashes. Modified is when it arrived in the store, by the store's clock.
type Object struct {
	Key      string
	Size     int64
	Modified time.Time
}

// Upload is an upload that was begun and neither completed nor aborted.
type Upload struct {
	Key     string
	ID      string
	Started time.Time
}

// PutOptions guides one upload. The zero value suits small objects.
type PutOptions struct {
	Size     int64             // about how many bytes will come, 0 if unknown
	PartSize int64             // of a multipart upload; 0 means chosen from Size
	Parallel int               // parts under way at once; 0 means DefaultParallel
	Metadata map[string]string // stored beside the object where the store can
}

// Lock protects an object from deletion.
type Lock struct {
	Until     time.Time // zero means no retention
	LegalHold bool
}

// Active reports whether the lock still protects at the given time.
func (l Lock) Active(now time.Time) bool { return l.LegalHold || l.Until.After(now) }

// Store holds objects below one root.
type Store interface {
	// Put stores what src yields under key. The object appears only after src
	// ended with io.EOF; any other error, io.ErrUnexpectedEOF among them, means
	// that nothing is stored. It returns the number of bytes stored.
	Put(ctx context.Context, key string, src io.Reader, opts PutOptions) (int64, error)
	// Get opens an object and tells its size. Reading fails with ErrTruncated
	// where fewer bytes come than announced.
	Get(ctx context.Context, key string) (io.ReadCloser, int64, error)
	// Stat asks for exactly this object. The error is ErrNotExist only where the
	// store itself says that the object is not there: whatever else stands in the
	// way of an answer is another error.
	Stat(ctx context.Context, key string) (Object, error)
	// Now returns the time by the clock that stamps the store's objects.
	Now(ctx context.Context) (time.Time, error)
	// List returns the objects whose keys begin with prefix, in key order.
	List(ctx context.Context, prefix string) ([]Object, error)
	// ListAfter is List for the keys that come after one.
	ListAfter(ctx context.Context, prefix, after string) ([]Object, error)
	// Delete removes an object. One that is already gone is no error.
	Delete(ctx context.Context, key string) error
	// Uploads lists unfinished uploads whose keys begin with prefix.
	Uploads(ctx context.Context, prefix string) ([]Upload, error)
	// Abort removes an unfinished upload with all its parts.
	Abort(ctx context.Context, u Upload) error
	// SetLock protects an object, and Locked tells its protection.
	SetLock(ctx context.Context, key string, l Lock) error
	Locked(ctx context.Context, key string) (Lock, error)
	// URL names the store as the user would write it.
	URL() string
}

// Open opens the repository that location names: an s3:// URL or a folder. A
// folder need not exist yet.
func Open(ctx context.Context, location string, opts S3Options) (Store, error) {
	if !IsS3(location) {
		if err := CheckPath(location); err != nil {
			return nil, err
		}
		return NewFolder(location), nil
	}
	bucket, prefix, err := ParseS3(location)
	if err != nil {
		return nil, err
	}
	return newS3(ctx, bucket, prefix, opts)
}

// CheckPath refuses what is no path of a file or folder: nothing at all, and
// URLs, mistyped ones too. Taken for a folder s3:/bucket would look like a
// success, with the backup on the wrong disk.
func CheckPath(location string) error {
	scheme, _, isURL := strings.Cut(location, ":/")
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789+-"
	switch {
	case location == "":
		return fmt.Errorf("%w: a location is empty", ErrConfig)
	case isURL && len(scheme) > 1 && strings.Trim(strings.ToLower(scheme), letters) == "": // C:/ is a path
		// Not quoted whole: what stands before an @ may be a secret.
		return hint.With(fmt.Errorf("%w: what begins with %s:/ is neither a path nor an s3:// URL", ErrConfig, scheme), "write s3://BUCKET/PREFIX/, or ./ before a path of that name")
	}
	return nil
}

// IsS3 reports whether location is an s3:// URL.
func IsS3(location string) bool { return strings.HasPrefix(location, "s3://") }

// ParseS3 splits an s3:// URL into the bucket and the prefix of all keys. A
// prefix ends in a slash unless it is empty.
func ParseS3(location string) (bucket, prefix string, err error) {
	rest, ok := strings.CutPrefix(location, "s3://")
	bucket, prefix, _ = strings.Cut(rest, "/")
	switch {
	case !ok, bucket == "":
		return "", "", fmt.Errorf("%w: %q has no bucket, want s3://BUCKET/PREFIX/", ErrConfig, location)
	case strings.ContainsAny(bucket, "@?#:"), strings.ContainsAny(prefix, "?#"):
		// Not quoted: what stands before an @ may be a secret.
		return "", "", fmt.Errorf("%w: an s3:// URL holds a bucket and a prefix, nothing else", ErrConfig)
	}
	prefix = strings.Trim(prefix, "/")
	for part := range strings.SplitSeq(prefix, "/") {
		if part == "." || part == ".." || (part == "" && prefix != "") {
			return "", "", fmt.Errorf("%w: prefix %q has an empty or a dot segment", ErrConfig, prefix)
		}
	}
	if prefix != "" {
		prefix += "/"
	}
	return bucket, prefix, nil
}

// Copy copies an object between stores under the same key, on the server's
// side where both ends are buckets of one account. It reports whether it could.
// What passes through here instead passes through check, if that is not nil.
func Copy(ctx context.Context, from, to Store, key string, check func(io.Reader) io.Reader) (serverSide bool, err error) {
	src, ok1 := from.(*S3)
	dst, ok2 := to.(*S3)
	if ok1 && ok2 && src.sameAccount(dst) {
		err := dst.copyFrom(ctx, src, key)
		if err == nil || ctx.Err() != nil {
			return true, err
		}
		// A store without server-side copy, or rights on one end only: through here, then.
	}
	body, size, err := from.Get(ctx, key)
	if err != nil {
		return false, err
	}
	reader := io.Reader(body)
	if check != nil {
		reader = check(reader)
	}
	_, err = to.Put(ctx, key, reader, PutOptions{Size: size})
	return false, errors.Join(err, body.Close())
}

// fill reads from r until buf is full or r ends. Only io.EOF is an end: a
// reader that breaks with anything else has not delivered its data.
func fill(r io.Reader, buf []byte) (n int, ended bool, err error) {
	const maxEmptyReads = 100
	empty := 0
	for n < len(buf) {
		m, err := r.Read(buf[n:])
		n += m
		switch {
		case err == io.EOF: // a wrapped EOF is a broken source, not an end
			return n, true, nil
		case err != nil:
			return n, false, err
		case m > 0:
			empty = 0
		default:
			if empty++; empty == maxEmptyReads {
				return n, false, io.ErrNoProgress
			}
		}
	}
	return n, false, nil
}

// exact fails a body that ends before its announced size.
type exact struct {
	io.ReadCloser
	left int64
	name string
}

func (e *exact) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	e.left -= int64(n)
	if errors.Is(err, io.ErrUnexpectedEOF) || (errors.Is(err, io.EOF) && e.left > 0) {
		return n, fmt.Errorf("read %s: %w: %d bytes are missing", e.name, ErrTruncated, e.left)
	}
	return n, err
}
