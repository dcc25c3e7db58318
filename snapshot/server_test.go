package snapshot_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/store"
	"github.com/etcdkit/etcdkit/internal/testing/reference"
)

func clearCredentials(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	none := filepath.Join(t.TempDir(), "none")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", none)
	t.Setenv("AWS_CONFIG_FILE", none)
}

func setCredentials(t *testing.T) {
	clearCredentials(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "test-key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test-secret")
}

var server struct{ url, dir string } // one server for all tests of the package

// bucketURL makes a new bucket.
func bucketURL(t *testing.T) string {
	t.Helper()
	setCredentials(t)
	dir, err := os.MkdirTemp(server.dir, "bucket-")
	if err != nil {
		t.Fatal(err)
	}
	return "s3://" + filepath.Base(dir) + "/"
}

// s3Options reach the server of the tests.
func s3Options() store.S3Options {
	return store.S3Options{Endpoint: server.url, RetryFor: time.Second, StallTimeout: 10 * time.Second}
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	program, err := reference.Build(context.Background(), reference.Versitygw)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if server.dir, err = os.MkdirTemp("", "etcdkit-s3-*"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(server.dir)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	addr := l.Addr().String()
	_ = l.Close()
	cmd := exec.Command(program, "--port", addr, "--access", "test-key", "--secret", "test-secret", "--quiet", "posix", server.dir)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	server.url = "http://" + addr
	for range 600 {
		if resp, err := http.Get(server.url); err == nil {
			_ = resp.Body.Close()
			return m.Run()
		}
		time.Sleep(50 * time.Millisecond)
	}
	fmt.Fprintln(os.Stderr, "versitygw did not start")
	return 1
}
