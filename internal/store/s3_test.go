package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/store"
	"github.com/etcdkit/etcdkit/internal/testing/s3test"
)

// quick are options that do not make a test of a store that answers with errors
// wait.
func quick(endpoint string) store.S3Options {
	return store.S3Options{Endpoint: endpoint, RetryFor: 300 * time.Millisecond}
}

func open(t *testing.T, location string, opts store.S3Options) store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), location, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLocations(t *testing.T) {
	for location, want := range map[string]string{
		"s3://bkt":                 "bkt ",
		"s3://bkt/":                "bkt ",
		"s3://bkt/p":               "bkt p/",
		"s3://bkt/p/q/":            "bkt p/q/",
		"s3://":                    "error",
		"s3:///p":                  "error",
		"s3://key:secret@b/p":      "error",
		"s3://bkt/p?region=x":      "error",
		"s3://bkt/a//b":            "error",
		"s3://bkt/../other-prefix": "error",
	} {
		bucket, prefix, err := store.ParseS3(location)
		got := bucket + " " + prefix
		if err != nil {
			got = "error"
			if !errors.Is(err, store.ErrConfig) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v", location, err)
			}
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", location, got, want)
		}
	}
	for location, refused := range map[string]bool{
		"": true, "gs://b/p": true, "s3:/b/p/": true, "S3://b/p/": true, "file:///var/backups/": true, "https://key:secret@h/": true,
		"/var/backups/": false, "./s3:/b/": false, "C:/backups/": false, "a:b/": false,
	} {
		err := store.CheckPath(location)
		if _, err := store.Open(t.Context(), location, store.S3Options{}); errors.Is(err, store.ErrConfig) != refused {
			t.Errorf("open %q: %v, refused should be %t", location, err, refused)
		}
		if errors.Is(err, store.ErrConfig) != refused || (err != nil && strings.Contains(err.Error()+hint.Of(err), "secret")) {
			t.Errorf("%q: %v, refused should be %t", location, err, refused)
		}
	}
}

func TestWrongOptionsAreToldBeforeAnythingIsSent(t *testing.T) {
	setCredentials(t)
	for name, opts := range map[string]store.S3Options{
		"endpoint with a path":    {Endpoint: "https://h/bucket"},
		"endpoint with a secret":  {Endpoint: "https://u:p@h"},
		"addressing":              {Addressing: "virtual"},
		"checksum":                {Checksum: "crc"},
		"sse":                     {SSE: "aes"},
		"sse without key id":      {SSE: "kms:"},
		"proxy":                   {Proxy: "::"},
		"CA file that holds none": {CAFile: "s3_test.go"},
	} {
		if _, err := store.Open(t.Context(), "s3://bkt/", opts); !errors.Is(err, store.ErrConfig) {
			t.Errorf("%s: %v, want ErrConfig", name, err)
		}
	}
}

// answer is a stub that gives one answer to everything.
func answer(t *testing.T, status int, code string) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		if code != "" {
			fmt.Fprintf(w, "<Error><Code>%s</Code><Message>no</Message></Error>", code)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestErrorsAreInTheOperatorsWords(t *testing.T) {
	setCredentials(t)
	for name, tc := range map[string]struct {
		status int
		code   string
		is     error
		hint   string
	}{
		"denied":                      {403, "AccessDenied", store.ErrDenied, "s3:PutObject"},
		"no such bucket":              {404, "NoSuchBucket", store.ErrNoBucket, "create bucket"},
		"wrong key (k3s-io/k3s#8918)": {403, "InvalidAccessKeyId", store.ErrDenied, "AWS_ACCESS_KEY_ID"},
		"wrong key, a 404":            {404, "XAdminUserNotFound", store.ErrDenied, "AWS_ACCESS_KEY_ID"},
		"wrong secret":                {403, "SignatureDoesNotMatch", store.ErrDenied, "AWS_SECRET_ACCESS_KEY"},
		"clock skew":                  {403, "RequestTimeTooSkewed", store.ErrDenied, "clock"},
		"expired token":               {400, "ExpiredToken", store.ErrDenied, "session token"},
		"a proxy's 413":               {413, "", nil, "--part-size"},
		"elsewhere":                   {301, "PermanentRedirect", nil, "--s3-region"},
		"500 forever":                 {500, "InternalError", nil, "own health"},
		"503 without a body":          {503, "", nil, "own health"},
		"a proxy's plain 403":         {403, "", store.ErrDenied, "s3:PutObject"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, "s3://bkt/p/", quick(answer(t, tc.status, tc.code)))
			_, err := s.Put(t.Context(), "x", strings.NewReader("1"), store.PutOptions{})
			if err == nil || (tc.is != nil && !errors.Is(err, tc.is)) || !strings.Contains(hint.Of(err), tc.hint) || !strings.Contains(err.Error(), "s3://bkt/p/x") {
				t.Errorf("got %v, hint %q; want %v, hint with %q", err, hint.Of(err), tc.is, tc.hint)
			}
		})
	}
}

// front is a proxy before the real server that may answer by itself.
func front(t *testing.T, server *s3test.Server, first func(w http.ResponseWriter, r *http.Request) (handled bool)) string {
	t.Helper()
	srv := httptest.NewServer(fronting(t, server, first))
	t.Cleanup(srv.Close)
	return srv.URL
}

// frontTLS is front over TLS, with a self-signed certificate.
func frontTLS(t *testing.T, server *s3test.Server, first func(w http.ResponseWriter, r *http.Request) (handled bool)) string {
	t.Helper()
	srv := httptest.NewTLSServer(fronting(t, server, first))
	t.Cleanup(srv.Close)
	return srv.URL
}

func fronting(t *testing.T, server *s3test.Server, first func(w http.ResponseWriter, r *http.Request) (handled bool)) http.Handler {
	t.Helper()
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // it is signed
	}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !first(w, r) {
			pass.ServeHTTP(w, r)
		}
	})
}

// k3s-io/k3s#13087: an upload is tried again.
func TestFailuresThatPassAreRetried(t *testing.T) {
	server := startS3(t)
	var n atomic.Int32
	opts := quick(front(t, server, func(w http.ResponseWriter, _ *http.Request) bool {
		if n.Add(1)%3 != 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		return false
	}))
	opts.RetryFor = 20 * time.Second
	s := open(t, bucketURL(t, server)+"retried/", opts)
	data := random(t, 2*store.MinPartSize+7)
	if _, err := s.Put(t.Context(), "x", bytes.NewReader(data), store.PutOptions{PartSize: store.MinPartSize}); err != nil {
		t.Fatal(err)
	}
	if got, err := get(s, t.Context(), "x"); err != nil || !bytes.Equal(got, data) {
		t.Errorf("get: %d bytes, %v", len(got), err)
	}
}

// fleetdm/fleet#47850: some stores refuse the newer checksums.
func TestAStoreWithoutChecksumsIsServedByTheNextOne(t *testing.T) {
	server := startS3(t)
	for name, tc := range map[string]struct {
		mode    string
		refused func(h http.Header) bool
		fails   bool
	}{
		"crc32c refused":        {"auto", func(h http.Header) bool { return hasChecksum(h) }, false},
		"md5 refused as well":   {"auto", func(h http.Header) bool { return hasChecksum(h) || h.Get("Content-Md5") != "" }, false},
		"asked for and not had": {"crc32c", func(h http.Header) bool { return hasChecksum(h) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			opts := quick(front(t, server, func(w http.ResponseWriter, r *http.Request) bool {
				if !tc.refused(r.Header) {
					return false
				}
				_, _ = io.Copy(io.Discard, r.Body)
				w.WriteHeader(http.StatusNotImplemented)
				fmt.Fprint(w, "<Error><Code>NotImplemented</Code><Message>A header is not implemented</Message></Error>")
				return true
			}))
			opts.Checksum = tc.mode
			s := open(t, bucketURL(t, server)+"e86/"+strings.ReplaceAll(name, " ", "-")+"/", opts)
			data := random(t, store.MinPartSize+7)
			for _, part := range []int{10, len(data)} {
				_, err := s.Put(t.Context(), "x", bytes.NewReader(data[:part]), store.PutOptions{PartSize: store.MinPartSize})
				if (err != nil) != tc.fails {
					t.Errorf("put %d bytes: %v, want an error: %t", part, err, tc.fails)
				}
			}
		})
	}
}

func hasChecksum(h http.Header) bool {
	for name := range h {
		if strings.HasPrefix(name, "X-Amz-Checksum") || strings.HasPrefix(name, "X-Amz-Sdk-Checksum") || name == "X-Amz-Trailer" {
			return true
		}
	}
	return false
}

func TestEveryChecksumModeIsAcceptedByARealStore(t *testing.T) {
	server := startS3(t)
	for _, mode := range []string{"auto", "crc32c", "sha256", "md5", "none"} {
		t.Run(mode, func(t *testing.T) {
			s := open(t, bucketURL(t, server)+mode+"/", store.S3Options{Endpoint: server.URL, Checksum: mode})
			data := random(t, store.MinPartSize+7)
			for _, n := range []int{10, len(data)} {
				if _, err := s.Put(t.Context(), "x", bytes.NewReader(data[:n]), store.PutOptions{PartSize: store.MinPartSize}); err != nil {
					t.Errorf("put %d bytes: %v", n, err)
				}
			}
		})
	}
}

// rancher/rancher#39987; versitygw implements no server-side encryption,
// so the headers are looked at on their way.
func TestServerSideEncryptionIsAskedForOnEveryUpload(t *testing.T) {
	server := startS3(t)
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, random(t, 32), 0o600); err != nil {
		t.Fatal(err)
	}
	for sse, header := range map[string]string{
		"s3":         "X-Amz-Server-Side-Encryption: AES256",
		"kms:my-key": "X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id: my-key",
		"c:" + key:   "X-Amz-Server-Side-Encryption-Customer-Algorithm: AES256",
	} {
		t.Run(sse[:1], func(t *testing.T) {
			name, value, _ := strings.Cut(header, ": ")
			var mu sync.Mutex
			seen := map[string]bool{}
			opts := quick(frontTLS(t, server, func(_ http.ResponseWriter, r *http.Request) bool {
				mu.Lock()
				defer mu.Unlock()
				switch {
				case r.Method == http.MethodPut && !r.URL.Query().Has("uploadId"):
					seen["put"] = r.Header.Get(name) == value
				case r.Method == http.MethodPost && r.URL.Query().Has("uploads"):
					seen["begin"] = r.Header.Get(name) == value
				}
				return false
			}))
			opts.SSE, opts.InsecureSkipVerify = sse, true
			s := open(t, bucketURL(t, server)+"sse/", opts)
			for _, n := range []int{1, store.MinPartSize + 1} {
				_, _ = s.Put(t.Context(), "x", bytes.NewReader(make([]byte, n)), store.PutOptions{PartSize: store.MinPartSize})
			}
			if !seen["put"] || !seen["begin"] {
				t.Errorf("requests that carried %q: %v", header, seen)
			}
		})
	}
}

// k3s-io/k3s#11603: compression on the way ended downloads early.
func TestNothingIsCompressedOnTheWayAndAShortBodyIsAnError(t *testing.T) {
	setCredentials(t)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			t.Error("compression was offered to the store")
		}
		w.Header().Set("Content-Length", "1000")
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
		_, _ = w.Write(make([]byte, 400)) // the server closes: 600 are missing
	}))
	defer srv.Close()
	if _, err := get(open(t, "s3://bkt/", quick(srv.URL)), t.Context(), "x"); !errors.Is(err, store.ErrTruncated) {
		t.Errorf("get: %v, want ErrTruncated", err)
	}
}

func TestAStalledStoreIsGivenUp(t *testing.T) {
	setCredentials(t)
	release := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer srv.Close()
	defer close(release)
	opts := quick(srv.URL)
	opts.StallTimeout = time.Second
	s := open(t, "s3://bkt/", opts)
	if _, err := s.Put(t.Context(), "x", strings.NewReader("1"), store.PutOptions{}); !errors.Is(err, store.ErrUnreachable) {
		t.Errorf("put: %v, want ErrUnreachable", err)
	}
}

// go-gitea/gitea#38753: parts always suffice, or the upload fails.
func TestPartSizeGrowsWithTheSource(t *testing.T) {
	for size, want := range map[int64]int64{0: 6 << 20, 1 << 30: 6 << 20, 100 << 30: 13 << 20, 1 << 40: 132 << 20} {
		if got := store.PartSize(size); got != want || got*10_000 < size {
			t.Errorf("part size for %d: %d, want %d", size, got, want)
		}
	}
}
