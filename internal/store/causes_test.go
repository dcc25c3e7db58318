//go:build !windows

package store_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/store"
)

// The error names what refused, without a retry: these faults are not transient.
func TestWhoRefusesIsNamed(t *testing.T) {
	setCredentials(t)
	const page = "<html><body>Blocked by policy</body></html>"
	var asked atomic.Int32
	refusing := func(status int, body string) string {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}))
		t.Cleanup(srv.Close)
		return srv.URL
	}
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	for name, tc := range map[string]struct {
		opts  store.S3Options
		is    error
		says  string
		hint  string
		quiet string // what must not be said
	}{
		"a proxy that forbids the host":  {store.S3Options{Endpoint: "https://s3.example", Proxy: refusing(403, page)}, store.ErrProxy, "403 Forbidden to the wish for s3.example:443", "--s3-proxy", "s3:"},
		"a proxy that wants a password":  {store.S3Options{Endpoint: "https://s3.example", Proxy: refusing(407, "")}, store.ErrProxy, "407", "--s3-proxy", "s3:"},
		"a proxy that is not there":      {store.S3Options{Endpoint: "https://s3.example", Proxy: "http://127.0.0.1:1"}, store.ErrUnreachable, "proxyconnect", "it is the proxy", "s3:"},
		"a proxy's page in its place":    {store.S3Options{Endpoint: "http://s3.example", Proxy: refusing(403, page)}, store.ErrForeign, "HTTP 403, text/html", "--s3-proxy", "s3:"},
		"a proxy's wish for a password":  {store.S3Options{Endpoint: "http://s3.example", Proxy: refusing(407, page)}, store.ErrForeign, "a name and a password", "--s3-proxy", "s3:"},
		"no TLS to a port that wants it": {store.S3Options{Endpoint: "http://" + strings.TrimPrefix(secure.URL, "https://")}, store.ErrUnreachable, "TLS", "--s3-endpoint https://127", ""},
		"no TLS, and only an alert":      {store.S3Options{Endpoint: "http://" + alerting(t)}, store.ErrUnreachable, "", "--s3-endpoint https://127", ""},
	} {
		t.Run(name, func(t *testing.T) {
			tc.opts.RetryFor = time.Hour
			if strings.Contains(name, "not there") { // which may pass
				tc.opts.RetryFor = time.Millisecond
			}
			s := open(t, "s3://bkt/p/", tc.opts)
			for what, ask := range map[string]func(context.Context) error{
				"list": func(ctx context.Context) error { _, err := s.List(ctx, ""); return err },
				"put": func(ctx context.Context) error {
					_, err := s.Put(ctx, "x", strings.NewReader("1"), store.PutOptions{})
					return err
				},
			} {
				asked.Store(0)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				err := ask(ctx)
				if ctx.Err() != nil || asked.Load() > 1 {
					t.Errorf("%s: it was tried again, %d times", what, asked.Load())
				}
				cancel()
				text := fmt.Sprint(err, " ", hint.Of(err))
				if !errors.Is(err, tc.is) || !strings.Contains(text, tc.says) || !strings.Contains(hint.Of(err), tc.hint) || tc.quiet != "" && strings.Contains(hint.Of(err), tc.quiet) {
					t.Errorf("%s: %v, hint %q; want %q and a hint with %q", what, err, hint.Of(err), tc.says, tc.hint)
				}
			}
		})
	}
}

// A proxy that fails, and does not refuse, is asked again.
func TestAProxyThatFailsIsAskedAgain(t *testing.T) {
	setCredentials(t)
	var asked atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(proxy.Close)
	_, err := open(t, "s3://bkt/", store.S3Options{Endpoint: "https://s3.example", Proxy: proxy.URL, RetryFor: time.Second}).List(t.Context(), "")
	if !errors.Is(err, store.ErrUnreachable) || !strings.Contains(err.Error(), "503") || asked.Load() < 2 {
		t.Errorf("asked %d times, %v", asked.Load(), err)
	}
}

// alerting is a server that answers everything with an alert of TLS.
func alerting(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1024))
			_, _ = conn.Write([]byte("\x15\x03\x01\x00\x02\x02\x46"))
			_ = conn.Close()
		}
	}()
	return l.Addr().String()
}

// What the place where credentials should be answers is passed on.
func TestCredentialsSayWhyTheyAreNotThere(t *testing.T) {
	pod := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer pod.Close()
	var asked atomic.Value
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.Method + " " + r.Host)
		w.WriteHeader(http.StatusForbidden)
	}))
	defer proxy.Close()
	for name, tc := range map[string]struct {
		env   map[string]string
		files string // ~/.aws/credentials
		opts  store.S3Options
		says  []string
	}{
		"nothing at all": {nil, "", store.S3Options{}, []string{"AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not both set", "the role of this machine or pod"}},
		"a pod identity that is refused": {
			map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": pod.URL + "/v1", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "pod-token"},
			"",
			store.S3Options{},
			[]string{"the role of this machine or pod", "403"},
		},
		"a pod identity without its token": {
			map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": pod.URL + "/v1", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": "/nowhere/token"},
			"",
			store.S3Options{},
			[]string{"/nowhere/token", "no such file"},
		},
		"a web identity without its token": {
			map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": "/nowhere/token", "AWS_ROLE_ARN": "arn:aws:iam::1:role/x", "AWS_REGION": "eu-west-1"},
			"",
			store.S3Options{},
			[]string{"/nowhere/token", "no such file"},
		},
		"a token service behind a proxy that refuses": {
			map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": "TOKEN", "AWS_ROLE_ARN": "arn:aws:iam::1:role/x", "AWS_REGION": "eu-west-1"},
			"",
			store.S3Options{Proxy: proxy.URL},
			[]string{"sts.eu-west-1.amazonaws.com", "the proxy refuses to connect", "403"},
		},
		"a profile with a role":       {nil, "[default]\nrole_arn = arn:aws:iam::1:role/x\n", store.S3Options{}, []string{"role_arn is not followed"}},
		"the profile asked for":       {nil, "[backup]\nrole_arn = arn:aws:iam::1:role/x\n", store.S3Options{Profile: "backup"}, []string{`profile "backup"`, "role_arn is not followed"}},
		"a profile that is not there": {nil, "[default]\n", store.S3Options{Profile: "backup"}, []string{`profile "backup"`, "does not exist"}},
		"a process that fails":        {nil, "[backup]\ncredential_process = /bin/sh -c false\n", store.S3Options{Profile: "backup"}, []string{"exit status 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			clearCredentials(t)
			dir := t.TempDir()
			token := filepath.Join(dir, "token")
			err := errors.Join(os.WriteFile(token, []byte("web-token"), 0o600), os.WriteFile(filepath.Join(dir, "credentials"), []byte(tc.files), 0o600))
			if err != nil {
				t.Fatal(err)
			}
			t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(dir, "credentials"))
			for key, value := range tc.env {
				t.Setenv(key, strings.Replace(value, "TOKEN", token, 1))
			}
			tc.opts.Endpoint = "https://s3.example"
			if tc.env == nil {
				tc.opts.MetadataEndpoint = "http://127.0.0.1:1"
			}
			_, err = store.Open(t.Context(), "s3://bkt/", tc.opts)
			if !errors.Is(err, store.ErrConfig) {
				t.Fatalf("got %v", err)
			}
			for _, part := range tc.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("got %v, want it to say %q", err, part)
				}
			}
			for _, secret := range []string{"pod-token", "web-token"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the token is shown: %v", err)
				}
			}
		})
	}
	if got := asked.Load(); got != "CONNECT sts.eu-west-1.amazonaws.com:443" {
		t.Errorf("the proxy was asked for %v", got)
	}
}

// A key is never sent where everybody on the way reads it, and nothing but a file
// of a sane size is read as one.
func TestAKeyOfOnesOwnIsKeptFromPlainHTTP(t *testing.T) {
	setCredentials(t)
	dir := t.TempDir()
	key, pipe := filepath.Join(dir, "key"), filepath.Join(dir, "pipe")
	if err := errors.Join(os.WriteFile(key, random(t, 32), 0o600), unix.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		opts store.S3Options
		says string // "" means that it is taken
	}{
		"over TLS":                {store.S3Options{Endpoint: "https://h", SSE: "c:" + key}, ""},
		"over TLS, by default":    {store.S3Options{Endpoint: "h:9000", SSE: "c:" + key}, ""},
		"over plain HTTP":         {store.S3Options{Endpoint: "http://h", SSE: "c:" + key}, "plain HTTP"},
		"a pipe as the key":       {store.S3Options{Endpoint: "https://h", SSE: "c:" + pipe}, "not a regular file"},
		"a device as the key":     {store.S3Options{Endpoint: "https://h", SSE: "c:/dev/zero"}, "not a regular file"},
		"a pipe as the authority": {store.S3Options{Endpoint: "https://h", CAFile: pipe}, "not a regular file"},
	} {
		_, err := store.Open(t.Context(), "s3://bkt/", tc.opts)
		if tc.says == "" && err != nil || tc.says != "" && (!errors.Is(err, store.ErrConfig) || !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%s: %v, want %q", name, err, tc.says)
		}
	}
}
