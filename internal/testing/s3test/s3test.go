// Package s3test runs versitygw, an S3 server over a folder, for tests.
package s3test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/etcdkit/etcdkit/internal/testing/certs"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/internal/testing/process"
	"github.com/etcdkit/etcdkit/internal/testing/reference"
)

// Region is the region that the server is in.
const Region = "us-east-1"

// Options describes a server. The zero value speaks plain HTTP.
type Options struct {
	CA         *certs.CA // if set, the server speaks TLS
	Versioning bool      // buckets may keep versions, as object locks need
}

// Server is a running S3 server with this process's account. It ends with the
// test.
type Server struct {
	URL       string
	AccessKey string
	SecretKey string
	Dir       string // holds a folder for each bucket, an object is a file in it
	Process   *process.Process

	tls *tls.Config
}

// Start starts a server over an empty folder and waits until it answers.
func Start(t testing.TB, opts Options) *Server {
	t.Helper()
	dir, port := t.TempDir(), etcdtest.ReservePort(t)
	s := &Server{
		URL: "http://" + port, Dir: filepath.Join(dir, "buckets"),
		AccessKey: account().key, SecretKey: account().secret,
	}
	folders := map[string]string{"sidecar": filepath.Join(dir, "metadata"), "versions": filepath.Join(dir, "versions"), "buckets": s.Dir}
	for _, folder := range folders {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"--port", port, "--region", Region, "--quiet"}
	if opts.CA != nil {
		pair := opts.CA.Server(t)
		s.URL, s.tls = "https://"+port, opts.CA.ClientConfig(t)
		args = append(args, "--cert", pair.CertFile, "--key", pair.KeyFile)
	}
	// Metadata beside the data: not every file system of a temporary folder
	// has extended attributes.
	args = append(args, "posix", "--sidecar", folders["sidecar"])
	if opts.Versioning {
		args = append(args, "--versioning-dir", folders["versions"])
	}
	s.Process = process.Start(t, process.Command{
		Path: reference.Path(t, reference.Versitygw), Args: append(args, s.Dir),
		Env: append(cleanEnv(), "ROOT_ACCESS_KEY="+s.AccessKey, "ROOT_SECRET_KEY="+s.SecretKey),
		Log: filepath.Join(dir, "versitygw.log"),
	})
	s.Process.Await(s.answers)
	return s
}

// Setenv puts the account where the test's own process looks for it. All servers
// of a process have the same one, and it stays: so tests may run side by side.
func (s *Server) Setenv(t testing.TB) {
	t.Helper()
	for _, kv := range s.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		if os.Getenv(name) == value {
			continue
		}
		if err := os.Setenv(name, value); err != nil {
			t.Fatal(err)
		}
	}
}

// account is that of every server of this process.
var account = sync.OnceValue(func() (a struct{ key, secret string }) { //nolint:gochecknoglobals // the environment is one, too
	a.key, a.secret = "key"+rand.Text(), rand.Text()
	return a
})

// Environ is the account as environment variables, for another process. They
// hide every other account of the machine.
func (s *Server) Environ() []string {
	const none = "/no/such/file"
	return []string{
		"AWS_ACCESS_KEY_ID=" + s.AccessKey, "AWS_SECRET_ACCESS_KEY=" + s.SecretKey, "AWS_REGION=" + Region,
		"AWS_SESSION_TOKEN=", "AWS_PROFILE=", "AWS_SHARED_CREDENTIALS_FILE=" + none, "AWS_CONFIG_FILE=" + none,
	}
}

// Client returns a client of the server.
func (s *Server) Client(t testing.TB) *minio.Client {
	t.Helper()
	scheme, addr, _ := strings.Cut(s.URL, "://")
	c, err := minio.New(addr, &minio.Options{
		Creds: credentials.NewStaticV4(s.AccessKey, s.SecretKey, ""), Secure: scheme == "https", Region: Region,
		Transport: &http.Transport{TLSClientConfig: s.tls}, BucketLookup: minio.BucketLookupPath,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Bucket makes an empty bucket and returns its name.
func (s *Server) Bucket(t testing.TB) string {
	t.Helper()
	return s.bucket(t, minio.MakeBucketOptions{})
}

// LockedBucket makes an empty bucket whose objects can be locked; the server
// needs Options.Versioning for it.
func (s *Server) LockedBucket(t testing.TB) string {
	t.Helper()
	return s.bucket(t, minio.MakeBucketOptions{ObjectLocking: true})
}

func (s *Server) bucket(t testing.TB, opts minio.MakeBucketOptions) string {
	t.Helper()
	name := "bucket-" + strings.ToLower(rand.Text()[:10])
	if err := s.Client(t).MakeBucket(t.Context(), name, opts); err != nil {
		t.Fatal(err)
	}
	return name
}

// cleanEnv is the environment without what versitygw would take for its flags.
func cleanEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "VGW_") || strings.HasPrefix(kv, "ROOT_") || strings.HasPrefix(kv, "AWS_")
	})
}

func (s *Server) answers(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		return false
	}
	c := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: s.tls, DisableKeepAlives: true}}
	resp, err := c.Do(req)
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil
}
