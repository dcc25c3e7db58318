package store_test

import (
	"path/filepath"
	"testing"

	"github.com/etcdkit/etcdkit/internal/store"
	"github.com/etcdkit/etcdkit/internal/testing/s3test"
)

func clearCredentials(t *testing.T) {
	t.Helper()
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	none := filepath.Join(t.TempDir(), "none")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", none)
	t.Setenv("AWS_CONFIG_FILE", none)
}

func setCredentials(t *testing.T) {
	t.Helper()
	clearCredentials(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "test-key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test-secret")
}

// startS3 starts a server whose account is in the environment.
func startS3(t *testing.T) *s3test.Server {
	t.Helper()
	s := s3test.Start(t, s3test.Options{})
	s.Setenv(t)
	return s
}

func bucketURL(t *testing.T, s *s3test.Server) string {
	t.Helper()
	return "s3://" + s.Bucket(t) + "/"
}

// openS3 opens a repository in a new bucket.
func openS3(t *testing.T, s *s3test.Server, prefix string) store.Store {
	t.Helper()
	return open(t, bucketURL(t, s)+prefix, store.S3Options{Endpoint: s.URL})
}
