package store

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/encrypt"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/regular"
)

// Defaults of S3Options.
const (
	DefaultStallTimeout = 60 * time.Second
	DefaultRetryFor     = 2 * time.Minute
)

// foreignPatience bounds the retries where something else than the store answers.
const foreignPatience = 5 * time.Second

// S3Options says how to reach a bucket. The zero value is AWS with what the
// environment offers as credentials. None of it is secret: keys come from the
// AWS environment variables, files, or the machine's role.
type S3Options struct {
	Endpoint           string // URL; "" means AWS
	Region             string // "" means asked from AWS, us-east-1 elsewhere
	Addressing         string // auto, path or dns
	CAFile             string // PEM bundle, trusted beside the system's
	InsecureSkipVerify bool
	Checksum           string // auto, crc32c, sha256, md5 or none
	SSE                string // s3, kms:KEYID or c:FILE
	Profile            string // of the AWS configuration files; "" means the whole chain
	Proxy              string // URL, or none; "" means what the environment says
	MetadataEndpoint   string // of the machine's role credentials; "" means the well-known address

	StallTimeout time.Duration // longest wait without a byte moving
	RetryFor     time.Duration // longest time of retrying one request after its first failure
	// Retrying, if set, is told when a request is to be repeated for the first
	// time, and why.
	Retrying func(err error)
	// FlagPrefix is what the names of the flags that hints speak of begin with.
	FlagPrefix string
}

// S3 is a Store in a bucket.
type S3 struct {
	core    *minio.Core
	creds   *credentials.Credentials
	bucket  string
	prefix  string
	opts    S3Options
	sse     encrypt.ServerSide
	checker atomic.Int32 // a checksum; auto mode moves it on when the store refuses
	clock   *clock
}

func newS3(ctx context.Context, bucket, prefix string, opts S3Options) (*S3, error) {
	if opts.StallTimeout <= 0 {
		opts.StallTimeout = DefaultStallTimeout
	}
	if opts.RetryFor <= 0 {
		opts.RetryFor = DefaultRetryFor
	}
	s := &S3{bucket: bucket, prefix: prefix, opts: opts}
	host, secure, err := opts.endpoint()
	if err != nil {
		return nil, err
	}
	lookup, err := opts.lookup()
	if err != nil {
		return nil, err
	}
	first, err := firstChecksum(opts.Checksum)
	if err != nil {
		return nil, err
	}
	s.checker.Store(int32(first))
	if s.sse, err = opts.sse(); err != nil {
		return nil, err
	}
	transport, err := newTransport(opts)
	if err != nil {
		return nil, err
	}
	s.clock = &transport.clock
	if s.creds, err = findCredentials(ctx, opts, transport); err != nil {
		return nil, err
	}
	s.core, err = minio.NewCore(host, &minio.Options{
		Creds: s.creds, Secure: secure, Transport: transport, Region: opts.region(),
		BucketLookup: lookup,
		MaxRetries:   1, // do retries, with a bound in time
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	s.core.SetAppInfo("etcdkit", "1")
	return s, nil
}

// endpoint returns the host to talk to and whether over TLS.
func (o S3Options) endpoint() (host string, secure bool, err error) {
	if o.Endpoint == "" {
		return "s3.amazonaws.com", true, nil
	}
	raw := o.Endpoint
	if !strings.Contains(raw, "://") {
		raw = "https://" + raw
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.User != nil || strings.Trim(u.Path, "/") != "" {
		return "", false, hint.With(fmt.Errorf("%w: the S3 endpoint is not a plain http:// or https:// URL", ErrConfig),
			"write it as https://HOST[:PORT], the bucket goes into s3://BUCKET/PREFIX/")
	}
	return u.Host, u.Scheme == "https", nil
}

// region avoids a location request, and the right that it takes, wherever the
// region is known or means nothing.
func (o S3Options) region() string {
	if o.Region == "" && o.Endpoint != "" && !strings.Contains(o.Endpoint, "amazonaws.com") {
		return "us-east-1"
	}
	return o.Region
}

func (o S3Options) lookup() (minio.BucketLookupType, error) {
	switch o.Addressing {
	case "", "auto":
		return minio.BucketLookupAuto, nil
	case "path":
		return minio.BucketLookupPath, nil
	case "dns":
		return minio.BucketLookupDNS, nil
	}
	return 0, fmt.Errorf("%w: addressing %q is none of auto, path, dns", ErrConfig, o.Addressing)
}

// sse returns the server-side encryption asked for, nil for none.
func (o S3Options) sse() (encrypt.ServerSide, error) {
	kind, arg, _ := strings.Cut(o.SSE, ":")
	switch {
	case o.SSE == "":
		return nil, nil
	case o.SSE == "s3":
		return encrypt.NewSSE(), nil
	case kind == "kms" && arg != "":
		return encrypt.NewSSEKMS(arg, nil)
	case kind == "c" && arg != "":
		if _, secure, err := o.endpoint(); err != nil || !secure {
			return nil, errors.Join(err, errKeyInClear)
		}
		key, err := readKey(arg)
		if err != nil {
			return nil, err
		}
		return encrypt.NewSSEC(key)
	}
	return nil, fmt.Errorf("%w: server-side encryption %q is none of s3, kms:KEYID, c:FILE", ErrConfig, kind)
}

// errKeyInClear refuses to send the customer's key where everybody on the way
// reads it.
var errKeyInClear = hint.With(fmt.Errorf("%w: server-side encryption with a key of your own sends the key with every request, and the endpoint is plain HTTP", ErrConfig),
	"give an https:// endpoint, or encrypt before the upload with --encrypt-to")

// maxKeyFile and maxCAFile bound what is read as a key and as authorities.
const (
	maxKeyFile = 4 << 10
	maxCAFile  = 16 << 20
)

// readKey reads a 32-byte key, raw or in base64.
func readKey(name string) ([]byte, error) {
	raw, err := regular.ReadFile(name, maxKeyFile)
	if err != nil {
		return nil, fmt.Errorf("%w: read encryption key: %w", ErrConfig, err)
	}
	if len(raw) == 32 {
		return raw, nil
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(raw)))
	if err != nil || len(key) != 32 {
		return nil, hint.With(fmt.Errorf("%w: %s holds no key of 32 bytes", ErrConfig, name),
			"make one with: openssl rand -out %s 32", name)
	}
	return key, nil
}

// URL returns the s3:// URL of the store, ending in a slash.
func (s *S3) URL() string { return "s3://" + s.bucket + "/" + s.prefix }

// sameAccount reports whether the server of s can copy from o by itself.
func (s *S3) sameAccount(o *S3) bool {
	a, errA := s.creds.GetWithContext(nil)
	b, errB := o.creds.GetWithContext(nil)
	return errA == nil && errB == nil && a.AccessKeyID == b.AccessKeyID && s.opts.Endpoint == o.opts.Endpoint
}

// do runs one request, again and again while it fails in a way that may pass,
// for at most RetryFor after the first failure.
func (s *S3) do(ctx context.Context, req request, fn func(context.Context) error) error {
	const firstWait, maxWait = 200 * time.Millisecond, 10 * time.Second
	var giveUp time.Time
	for wait := firstWait; ; wait = min(2*wait, maxWait) {
		err := fn(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s %s: %w", req.verb, s.URL()+req.key, context.Cause(ctx))
		}
		now := time.Now()
		if giveUp.IsZero() {
			giveUp = now.Add(s.opts.RetryFor)
			if errors.Is(err, ErrForeign) { // a page in front of the store seldom goes by itself
				giveUp = now.Add(min(s.opts.RetryFor, foreignPatience))
			}
			if s.opts.Retrying != nil && passing(err) {
				s.opts.Retrying(s.explain(req, err))
			}
		}
		if !passing(err) || now.Add(wait).After(giveUp) {
			return s.explain(req, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// request names what a call asks for, for messages.
type request struct {
	verb  string // as in "put object"
	right string // the permission it takes
	key   string
}
