package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
)

// ErrChanged tells that an object was replaced while it was being read.
var ErrChanged = errors.New("the object was replaced while it was being read")

// maxResumes bounds how often one object's download goes on after a break. A
// link that breaks more often is none.
const (
	maxResumes = 50
	resumeWait = 300 * time.Millisecond
)

// download is the body of an object that goes on where its connection broke:
// with the same object, or not at all.
type download struct {
	*S3
	ctx  context.Context // belongs to the one download
	key  string
	info minio.ObjectInfo // as it began
	body io.ReadCloser

	off     int64
	resumes int
	since   time.Time // of the first break after which nothing came, zero if something did
}

func (d *download) Read(p []byte) (int, error) {
	for {
		n, err := d.body.Read(p)
		d.off += int64(n)
		if n > 0 {
			d.since = time.Time{}
		}
		if err == nil || d.off >= d.info.Size && err == io.EOF { // the bare EOF is the end
			return n, err
		}
		if n > 0 { // what breaks shows at the next read
			return n, nil
		}
		if !d.mayResume() {
			return 0, err
		}
		if d.opts.Retrying != nil {
			d.opts.Retrying(fmt.Errorf("read %s: %w, after %d bytes", d.URL()+d.key, err, d.off))
		}
		if err := d.resume(); err != nil {
			return 0, err
		}
	}
}

// mayResume reports whether it is worth going on after a break, and waits a
// little where nothing came since the last one.
func (d *download) mayResume() bool {
	now := time.Now()
	if d.since.IsZero() {
		d.since = now
	} else {
		select {
		case <-d.ctx.Done():
		case <-time.After(resumeWait):
		}
	}
	d.resumes++
	return d.ctx.Err() == nil && d.info.ETag != "" && d.off < d.info.Size && d.resumes <= maxResumes && now.Sub(d.since) <= d.opts.RetryFor
}

// resume asks for the rest of the object.
func (d *download) resume() error {
	_ = d.body.Close() // it is broken
	d.body = http.NoBody
	return d.do(d.ctx, request{"get rest of object", "s3:GetObject", d.key}, func(ctx context.Context) error {
		opts := d.getOptions()
		if err := errors.Join(opts.SetMatchETag(d.info.ETag), d.setRange(&opts)); err != nil {
			return err
		}
		body, info, header, err := d.core.GetObject(ctx, d.bucket, d.prefix+d.key, opts)
		if minio.ToErrorResponse(err).StatusCode == http.StatusPreconditionFailed {
			return fmt.Errorf("read %s: %w", d.URL()+d.key, ErrChanged)
		}
		if err != nil {
			return err
		}
		// Not every store knows If-Match, or Range.
		switch {
		case info.ETag != d.info.ETag || info.VersionID != d.info.VersionID:
			err = fmt.Errorf("read %s: %w", d.URL()+d.key, ErrChanged)
		case d.off > 0 && !strings.HasPrefix(header.Get("Content-Range"), fmt.Sprintf("bytes %d-", d.off)):
			err = fmt.Errorf("read %s: %w: the store does not give its rest", d.URL()+d.key, ErrTruncated)
		default:
			d.body = body
			return nil
		}
		return errors.Join(err, body.Close())
	})
}

func (d *download) setRange(opts *minio.GetObjectOptions) error {
	if d.off == 0 {
		return nil
	}
	return opts.SetRange(d.off, 0)
}

// Close implements io.Closer.
func (d *download) Close() error { return d.body.Close() }
