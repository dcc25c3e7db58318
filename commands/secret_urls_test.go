package commands_test

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/commands"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

// secretive runs a command line with variables, and fails if it shows a secret.
func secretive(t *testing.T, environ []string, args ...string) (code int, shown string) {
	t.Helper()
	var out bytes.Buffer
	home := t.TempDir()
	env := &cli.Env{
		In: strings.NewReader(""), Out: &out, Err: &out, Now: time.Now,
		Environ: append([]string{"HOME=" + home, "XDG_STATE_HOME=" + home}, environ...),
	}
	code = commands.Main(t.Context(), append([]string{"etcdkit"}, args...), env)
	for _, secret := range []string{"hunter2", "t0ken"} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("%v: a secret is shown:\n%s", args, out.String())
		}
	}
	return code, out.String()
}

// ways returns the ways to give a URL: itself, a variable, a file.
func ways(t *testing.T, url string) map[string]string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(file, []byte(url+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return map[string]string{"itself": url, "a variable": "env:SECRET_URL", "a file": "file:" + file}
}

// rancher/rke2#1698: secrets of a backup in arguments and logs.
func TestTheProxysPasswordIsUsedAndNeverShown(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
	var credentials string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		credentials = r.Header.Get("Proxy-Authorization")
		w.WriteHeader(http.StatusForbidden)
	}))
	defer proxy.Close()
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte("user:hunter2"))
	url := "http://user:hunter2@" + strings.TrimPrefix(proxy.URL, "http://")
	for how, value := range ways(t, url) {
		credentials = ""
		code, shown := secretive(t, []string{"SECRET_URL=" + url}, "snapshot", "list", "s3://bucket/", "--s3-endpoint", "http://s3.invalid", "--s3-proxy", value)
		if code != 1 || credentials != want {
			t.Errorf("%s: exit code %d, the proxy got %q, want %q\n%s", how, code, credentials, want, shown)
		}
	}
	for name, bad := range map[string]struct {
		value string
		code  int
	}{
		"nobody listens":   {"http://user:hunter2@127.0.0.1:1", 1},
		"no URL":           {"http://user:hunter2@ho st", 2},
		"no such variable": {"env:NOTHING", 2},
		"no such file":     {"file:/nonexistent", 2},
	} {
		if code, shown := secretive(t, nil, "snapshot", "list", "s3://bucket/", "--s3-endpoint", "http://s3.invalid", "--s3-retry-for", "1ms", "--s3-proxy", bad.value); code != bad.code {
			t.Errorf("%s: exit code %d, want %d\n%s", name, code, bad.code, shown)
		}
	}
	if code, shown := secretive(t, []string{"ETCDKIT_S3_PROXY=" + url}, "config", "view"); code != 0 {
		t.Errorf("config view: exit code %d\n%s", code, shown)
	}
	if code, shown := secretive(t, []string{"ETCDKIT_ENDPOINTS=http://a.invalid:1,http://user:hunter2@b.invalid:1"}, "config", "view"); code != 0 || !strings.Contains(shown, "http://a.invalid:1,b.invalid:1") {
		t.Errorf("config view: exit code %d\n%s", code, shown)
	}
}

// Whoever takes an identity for a recipient, or for a file, does not see it again.
func TestAnIdentityInThePlaceOfAFileIsNotShown(t *testing.T) {
	t.Parallel()
	const identity = "AGE-SECRET-KEY-1hunter2"
	repo := t.TempDir() + "/"
	for _, args := range [][]string{
		{"snapshot", "save", repo, "--encrypt-to", identity},
		{"snapshot", "verify", repo, "--identity", identity},
		{"secrets", "scan", "@none", "--identity", identity},
	} {
		if code, shown := secretive(t, nil, args...); code != 2 {
			t.Errorf("%v: exit code %d, want 2\n%s", args[:2], code, shown)
		}
	}
}

func TestThePingsURLIsCalledAndNeverShown(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, embedded.Options{})
	var called string
	status := http.StatusOK
	monitor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		called = r.URL.String()
		w.WriteHeader(status)
	}))
	defer monitor.Close()
	url := monitor.URL + "/t0ken?key=hunter2"
	save := func(endpoint, ping string) (int, string) {
		t.Helper()
		called = ""
		return secretive(t, []string{"SECRET_URL=" + url}, "snapshot", "save", filepath.Join(t.TempDir(), "x.db"), "--endpoints", endpoint, "--ping-url", ping)
	}
	for how, value := range ways(t, url) {
		if code, shown := save(cluster.Endpoints()[0], value); code != 0 || called != "/t0ken?key=hunter2" {
			t.Errorf("%s: exit code %d, called %q\n%s", how, code, called, shown)
		}
	}
	if code, shown := save("127.0.0.1:1", url); code != 1 || called != "/t0ken/fail?key=hunter2" {
		t.Errorf("after a failure: exit code %d, called %q\n%s", code, called, shown)
	}
	status = http.StatusInternalServerError
	for name, bad := range map[string]string{
		"it answers 500": url, "nobody listens": "http://127.0.0.1:1/t0ken", "no URL": "http://ho st/t0ken", "no scheme": "t0ken", "no such variable": "env:NOTHING",
	} {
		if code, shown := save(cluster.Endpoints()[0], bad); code != 0 || !strings.Contains(shown, "ping: ") {
			t.Errorf("%s: exit code %d, want a warning alone\n%s", name, code, shown)
		}
	}
}
