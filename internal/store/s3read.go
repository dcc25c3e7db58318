package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/encrypt"

	"github.com/etcdkit/etcdkit/internal/hint"
)

// maxCopy is the largest object that S3 copies in one request.
const maxCopy = 5 << 30

func (s *S3) getOptions() minio.GetObjectOptions {
	opts := minio.GetObjectOptions{}
	if s.sse != nil && s.sse.Type() == encrypt.SSEC {
		opts.ServerSideEncryption = s.sse
	}
	return opts
}

// Get implements Store. A download whose connection breaks goes on where it
// was, for at most RetryFor without a byte.
func (s *S3) Get(ctx context.Context, key string) (io.ReadCloser, int64, error) {
	var body io.ReadCloser
	var info minio.ObjectInfo
	err := s.do(ctx, request{"get object", "s3:GetObject", key}, func(ctx context.Context) (err error) {
		body, info, _, err = s.core.GetObject(ctx, s.bucket, s.prefix+key, s.getOptions())
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	if info.Size < 0 {
		return nil, 0, errors.Join(fmt.Errorf("get object %s: the store does not tell its size", s.URL()+key), body.Close())
	}
	d := &download{S3: s, ctx: ctx, key: key, info: info, body: body}
	return &exact{ReadCloser: d, left: info.Size, name: s.URL() + key}, info.Size, nil
}

func (s *S3) stat(ctx context.Context, key string) (minio.ObjectInfo, error) {
	return s.core.StatObject(ctx, s.bucket, s.prefix+key, s.getOptions())
}

// Stat implements Store. The answer to a HEAD has no body, so that a proxy's "not
// found" looks like the store's: only the answer to a GET tells them apart.
func (s *S3) Stat(ctx context.Context, key string) (Object, error) {
	var info minio.ObjectInfo
	err := s.do(ctx, request{"look at object", "s3:GetObject", key}, func(ctx context.Context) (err error) {
		info, err = s.stat(ctx, key)
		return err
	})
	if err == nil {
		return Object{Key: key, Size: info.Size, Modified: info.LastModified}, nil
	}
	if !errors.Is(err, ErrNotExist) {
		return Object{}, err
	}
	body, size, err := s.Get(ctx, key)
	if err != nil {
		return Object{}, err
	}
	return Object{Key: key, Size: size}, body.Close()
}

// Now implements Store, by the Date of the store's answers.
func (s *S3) Now(ctx context.Context) (time.Time, error) {
	if now, known := s.clock.now(); known {
		return now, nil
	}
	// Whatever the answer is, it has a Date.
	_, err := s.stat(ctx, clockKey)
	if now, known := s.clock.now(); known {
		return now, nil
	}
	if err != nil && ctx.Err() != nil {
		return time.Time{}, context.Cause(ctx)
	}
	return time.Time{}, fmt.Errorf("ask %s for its time: %w", s.URL(), ErrNoClock)
}

// List implements Store.
func (s *S3) List(ctx context.Context, prefix string) ([]Object, error) {
	return s.ListAfter(ctx, prefix, "")
}

// ListAfter implements Store.
func (s *S3) ListAfter(ctx context.Context, prefix, after string) ([]Object, error) {
	var objects []Object
	opts := minio.ListObjectsOptions{Prefix: s.prefix + prefix, Recursive: true}
	if after != "" {
		opts.StartAfter = s.prefix + after
	}
	err := s.do(ctx, request{"list", "s3:ListBucket", prefix}, func(ctx context.Context) error {
		objects = nil
		for o := range s.core.ListObjectsIter(ctx, s.bucket, opts) {
			if o.Err != nil {
				return o.Err
			}
			objects = append(objects, Object{Key: o.Key[len(s.prefix):], Size: o.Size, Modified: o.LastModified})
		}
		return ctx.Err()
	})
	return objects, err
}

// Delete implements Store.
func (s *S3) Delete(ctx context.Context, key string) error {
	err := s.do(ctx, request{"delete object", "s3:DeleteObject", key}, func(ctx context.Context) error {
		return s.core.RemoveObject(ctx, s.bucket, s.prefix+key, minio.RemoveObjectOptions{})
	})
	if errors.Is(err, ErrNotExist) {
		return nil
	}
	return err
}

// Uploads implements Store.
func (s *S3) Uploads(ctx context.Context, prefix string) ([]Upload, error) {
	var uploads []Upload
	err := s.do(ctx, request{"list uploads of", "s3:ListBucketMultipartUploads", prefix}, func(ctx context.Context) error {
		uploads = nil
		const page = 1000
		var key, id string
		for {
			res, err := s.core.ListMultipartUploads(ctx, s.bucket, s.prefix+prefix, key, id, "", page)
			if err != nil {
				return err
			}
			for _, u := range res.Uploads {
				uploads = append(uploads, Upload{Key: u.Key[len(s.prefix):], ID: u.UploadID, Started: u.Initiated})
			}
			if !res.IsTruncated || (res.NextKeyMarker == key && res.NextUploadIDMarker == id) {
				return nil
			}
			key, id = res.NextKeyMarker, res.NextUploadIDMarker
		}
	})
	return uploads, err
}

// Abort implements Store.
func (s *S3) Abort(ctx context.Context, u Upload) error {
	err := s.do(ctx, request{"abort upload of", "s3:AbortMultipartUpload", u.Key}, func(ctx context.Context) error {
		return s.core.AbortMultipartUpload(ctx, s.bucket, s.prefix+u.Key, u.ID)
	})
	if errors.Is(err, ErrNotExist) {
		return nil
	}
	return err
}

// SetLock implements Store.
func (s *S3) SetLock(ctx context.Context, key string, l Lock) error {
	err := s.do(ctx, request{"lock", "s3:PutObjectRetention and s3:PutObjectLegalHold", key}, func(ctx context.Context) error {
		if !l.Until.IsZero() {
			mode := minio.Governance
			opts := minio.PutObjectRetentionOptions{Mode: &mode, RetainUntilDate: &l.Until}
			if err := s.core.PutObjectRetention(ctx, s.bucket, s.prefix+key, opts); err != nil {
				return err
			}
		}
		if !l.LegalHold {
			return nil
		}
		on := minio.LegalHoldEnabled
		return s.core.PutObjectLegalHold(ctx, s.bucket, s.prefix+key, minio.PutObjectLegalHoldOptions{Status: &on})
	})
	if code := minio.ToErrorResponse(cause(err)).Code; code == "InvalidBucketObjectLockConfiguration" || code == "InvalidRequest" {
		return hint.With(err, "the bucket must be made with object lock enabled")
	}
	return err
}

// Locked implements Store. A bucket without object lock has no locks.
func (s *S3) Locked(ctx context.Context, key string) (Lock, error) {
	var l Lock
	err := s.do(ctx, request{"get lock of", "s3:GetObjectRetention and s3:GetObjectLegalHold", key}, func(ctx context.Context) error {
		_, until, err := s.core.GetObjectRetention(ctx, s.bucket, s.prefix+key, "")
		if unreadable(err) {
			until, err = s.retentionHeader(ctx, key)
		}
		if err != nil && !withoutLock(err) {
			return err
		}
		if until != nil {
			l.Until = *until
		}
		status, err := s.core.GetObjectLegalHold(ctx, s.bucket, s.prefix+key, minio.GetObjectLegalHoldOptions{})
		if err != nil && !withoutLock(err) {
			return err
		}
		l.LegalHold = status != nil && *status == minio.LegalHoldEnabled
		return nil
	})
	return l, err
}

// retentionHeader reads the retention from an object's headers: some stores
// answer the question for it by a document of their own.
func (s *S3) retentionHeader(ctx context.Context, key string) (*time.Time, error) {
	info, err := s.stat(ctx, key)
	if err != nil {
		return nil, err
	}
	value := info.Metadata.Get("X-Amz-Object-Lock-Retain-Until-Date")
	if value == "" {
		return nil, nil
	}
	until, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return nil, fmt.Errorf("retention %q is no time", value)
	}
	return &until, nil
}

// copyFrom copies an object on the server's side.
func (s *S3) copyFrom(ctx context.Context, from *S3, key string) error {
	return s.do(ctx, request{"copy object to", "s3:PutObject", key}, func(ctx context.Context) error {
		src := minio.CopySrcOptions{Bucket: from.bucket, Object: from.prefix + key}
		dst := minio.CopyDestOptions{Bucket: s.bucket, Object: s.prefix + key, Encryption: s.sse}
		if from.sse != nil && from.sse.Type() == encrypt.SSEC {
			src.Encryption = encrypt.SSECopy(from.sse)
		}
		info, err := from.stat(ctx, key)
		if err != nil {
			return err
		}
		if info.Size < maxCopy {
			_, err = s.core.Client.CopyObject(ctx, dst, src)
		} else {
			_, err = s.core.ComposeObject(ctx, dst, src)
		}
		return err
	})
}
