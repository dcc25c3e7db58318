package s3test_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/etcdkit/etcdkit/internal/testing/certs"
	"github.com/etcdkit/etcdkit/internal/testing/s3test"
)

func TestAnObjectComesBackAndIsAFileInTheFolder(t *testing.T) {
	for name, opts := range map[string]s3test.Options{
		"plain":           {},
		"TLS":             {CA: certs.NewCA(t)},
		"versions, locks": {Versioning: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := s3test.Start(t, opts)
			bucket, c := s.Bucket(t), s.Client(t)
			data := bytes.Repeat([]byte("etcd"), 1000)
			if _, err := c.PutObject(t.Context(), bucket, "a/b", bytes.NewReader(data), int64(len(data)), minio.PutObjectOptions{}); err != nil {
				t.Fatal(err)
			}
			o, err := c.GetObject(t.Context(), bucket, "a/b", minio.GetObjectOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer o.Close()
			got, err := io.ReadAll(o)
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("read %d bytes, %v; want the %d written", len(got), err, len(data))
			}
			if file, err := os.ReadFile(filepath.Join(s.Dir, bucket, "a/b")); err != nil || !bytes.Equal(file, data) {
				t.Errorf("the object's file has %d bytes, %v; want %d", len(file), err, len(data))
			}
		})
	}
}

func TestAnObjectUnderRetentionCannotBeRemoved(t *testing.T) {
	s := s3test.Start(t, s3test.Options{Versioning: true})
	bucket, c := s.LockedBucket(t), s.Client(t)
	info, err := c.PutObject(t.Context(), bucket, "a", bytes.NewReader(nil), 0, minio.PutObjectOptions{
		Mode: minio.Governance, RetainUntilDate: time.Now().Add(time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.RemoveObject(t.Context(), bucket, "a", minio.RemoveObjectOptions{VersionID: info.VersionID}); err == nil {
		t.Error("a locked version was removed")
	}
}
