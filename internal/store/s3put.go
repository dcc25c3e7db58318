package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/encrypt"
	"golang.org/x/sync/errgroup"

	"github.com/etcdkit/etcdkit/internal/hint"
)

// Limits of S3 and of this program's memory.
const (
	DefaultParallel = 3
	MinPartSize     = 5 << 20
	MaxPartSize     = 5 << 30
	defaultPartSize = 6 << 20
	maxParts        = 10_000
	partMemory      = 40 << 20 // for all parts held at once, unless one alone is larger
	smallObject     = 64 << 10
	abortTimeout    = 15 * time.Second
)

// PartSize returns the part size for an upload of about size bytes, so that
// the store's limit of parts suffices even where the source grows by a quarter.
func PartSize(size int64) int64 {
	const unit = 1 << 20
	need := (size + size/4 + maxParts - 1) / maxParts
	return max(defaultPartSize, (need+unit-1)/unit*unit)
}

// plan completes options.
func (o PutOptions) plan() PutOptions {
	if o.PartSize <= 0 {
		o.PartSize = PartSize(o.Size)
	}
	o.PartSize = max(o.PartSize, MinPartSize)
	if o.Parallel <= 0 {
		o.Parallel = DefaultParallel
	}
	// One part more than are under way is being filled.
	o.Parallel = max(1, min(o.Parallel, int(partMemory/o.PartSize)-1))
	return o
}

// Put implements Store: small objects go in one request, others in parts that
// are joined only after the source has ended.
func (s *S3) Put(ctx context.Context, key string, src io.Reader, opts PutOptions) (int64, error) {
	opts = opts.plan()
	first, ended, err := readPart(src, opts.PartSize)
	if err != nil {
		return 0, fmt.Errorf("put %s: %w", s.URL()+key, err)
	}
	if ended {
		return int64(len(first)), s.putWhole(ctx, key, first, opts)
	}
	return s.putParts(ctx, key, first, src, opts)
}

// readPart reads one part into a buffer that grows up to size, so that small
// objects take little memory.
func readPart(src io.Reader, size int64) (part []byte, ended bool, err error) {
	part = make([]byte, 0, min(size, smallObject))
	for {
		n, ended, err := fill(src, part[len(part):cap(part)])
		part = part[:len(part)+n]
		if ended || err != nil || int64(len(part)) == size {
			return part, ended, err
		}
		larger := make([]byte, len(part), size)
		copy(larger, part)
		part = larger
	}
}

// retryPut runs fn with the current checksum, and with the next where the
// store does not know that one.
func (s *S3) retryPut(fn func(checksum) error) error {
	c := checksum(s.checker.Load())
	first := fn(c)
	err := first
	for err != nil && refusesChecksum(err) {
		next, ok := c.next()
		if !ok {
			return first // it was not the checksum
		}
		c = next
		if err = fn(c); err == nil {
			s.checker.Store(int32(c))
		}
	}
	return err
}

func (s *S3) putWhole(ctx context.Context, key string, body []byte, opts PutOptions) error {
	req := request{"put object", "s3:PutObject", key}
	return s.retryPut(func(c checksum) error {
		sums := c.sum(body, s.secure())
		put := s.putOptions(opts)
		for name := range sums.header {
			put.UserMetadata[name] = sums.value
		}
		put.DisableContentSha256 = true // what there is to sign is in sums
		return s.do(ctx, req, func(ctx context.Context) error {
			_, err := s.core.PutObject(ctx, s.bucket, s.prefix+key, bytes.NewReader(body), int64(len(body)), sums.md5, sums.sha256, put)
			return err
		})
	})
}

func (s *S3) putOptions(opts PutOptions) minio.PutObjectOptions {
	meta := maps.Clone(opts.Metadata)
	if meta == nil {
		meta = map[string]string{}
	}
	return minio.PutObjectOptions{UserMetadata: meta, ServerSideEncryption: s.sse}
}

func (s *S3) secure() bool { return s.core.EndpointURL().Scheme == "https" }

// upload is one multipart upload under way.
type upload struct {
	*S3
	key, id string
	check   checksum

	mu    sync.Mutex
	parts []minio.CompletePart
}

// putParts uploads first and the rest of src in parts and joins them. The
// first part goes alone: it shows whether the store takes the checksum.
func (s *S3) putParts(ctx context.Context, key string, first []byte, src io.Reader, opts PutOptions) (n int64, err error) {
	var u *upload
	defer func() {
		if err != nil && u != nil {
			err = errors.Join(err, u.abort(ctx))
		}
	}()
	err = s.retryPut(func(c checksum) error {
		if u != nil {
			if err := u.abort(ctx); err != nil {
				return err
			}
		}
		if u, err = s.begin(ctx, key, c, opts); err != nil {
			return err
		}
		return u.put(ctx, 1, first)
	})
	if err != nil {
		return 0, err
	}
	n, err = u.rest(ctx, first, src, opts)
	n += int64(len(first))
	if err != nil {
		return n, err
	}
	return n, u.complete(ctx, n)
}

func (s *S3) begin(ctx context.Context, key string, c checksum, opts PutOptions) (*upload, error) {
	put := s.putOptions(opts)
	if name := c.algorithm(); name != "" {
		put.UserMetadata["X-Amz-Checksum-Algorithm"] = name
	}
	u := &upload{S3: s, key: key, check: c}
	err := s.do(ctx, request{"begin upload of", "s3:PutObject", key}, func(ctx context.Context) (err error) {
		u.id, err = s.core.NewMultipartUpload(ctx, s.bucket, s.prefix+key, put)
		return err
	})
	if err != nil {
		return nil, err
	}
	return u, nil
}

// rest uploads what follows the first part, whose buffer it uses again.
func (u *upload) rest(ctx context.Context, first []byte, src io.Reader, opts PutOptions) (total int64, err error) {
	free := make(chan []byte, opts.Parallel+1)
	free <- first[:cap(first)]
	for range opts.Parallel {
		free <- nil // made when first needed
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(opts.Parallel)
	defer func() {
		// A part that failed is why the others and the reading ended.
		if werr := g.Wait(); werr != nil && ctx.Err() == nil {
			err = werr
		}
	}()
	for number := 2; ; number++ {
		buf := <-free
		if buf == nil {
			buf = make([]byte, opts.PartSize)
		}
		n, ended, err := fill(src, buf)
		total += int64(n)
		switch {
		case gctx.Err() != nil:
			return total, fmt.Errorf("put %s: %w", u.URL()+u.key, context.Cause(gctx))
		case err != nil:
			return total, fmt.Errorf("put %s: %w", u.URL()+u.key, err)
		case n == 0 && ended:
			return total, nil
		case number > maxParts:
			return total, hint.With(fmt.Errorf("put %s: more than %d parts of %d MiB", u.URL()+u.key, maxParts, opts.PartSize>>20),
				"choose a larger --part-size")
		}
		g.Go(func() error {
			defer func() { free <- buf }()
			return u.put(gctx, number, buf[:n])
		})
		if ended {
			return total, nil
		}
	}
}

// put uploads one part.
func (u *upload) put(ctx context.Context, number int, body []byte) error {
	sums := u.check.sum(body, u.secure())
	put := minio.PutObjectPartOptions{
		Md5Base64: sums.md5, Sha256Hex: sums.sha256, CustomHeader: sums.header, SSE: u.sse,
		DisableContentSha256: true, // what there is to sign is in sums
	}
	req := request{fmt.Sprintf("put part %d of", number), "s3:PutObject", u.key}
	return u.do(ctx, req, func(ctx context.Context) error {
		part, err := u.core.PutObjectPart(ctx, u.bucket, u.prefix+u.key, u.id, number, bytes.NewReader(body), int64(len(body)), put)
		if err != nil {
			return err
		}
		u.mu.Lock()
		defer u.mu.Unlock()
		u.parts = append(u.parts, u.check.completed(number, part.ETag, sums))
		return nil
	})
}

// complete joins the parts. Where the answer to a first try was lost, the
// upload is gone and the object is there.
func (u *upload) complete(ctx context.Context, size int64) error {
	slices.SortFunc(u.parts, func(a, b minio.CompletePart) int { return a.PartNumber - b.PartNumber })
	put := minio.PutObjectOptions{}
	if u.sse != nil && u.sse.Type() == encrypt.SSEC {
		put.ServerSideEncryption = u.sse
	}
	return u.do(ctx, request{"complete upload of", "s3:PutObject", u.key}, func(ctx context.Context) error {
		_, err := u.core.CompleteMultipartUpload(ctx, u.bucket, u.prefix+u.key, u.id, u.parts, put)
		if minio.ToErrorResponse(err).Code == minio.NoSuchUpload {
			if info, statErr := u.stat(ctx, u.key); statErr == nil && info.Size == size {
				return nil
			}
		}
		return err
	})
}

// abort removes the parts, also after the caller gave up.
func (u *upload) abort(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	return u.Abort(ctx, Upload{Key: u.key, ID: u.id})
}
