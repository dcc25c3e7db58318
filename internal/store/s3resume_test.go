package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/store"
	"github.com/etcdkit/etcdkit/internal/testing/faultproxy"
)

// stored puts an object of a few MiB past the proxy and returns the bucket
// behind it, which retries for so long.
func stored(t *testing.T, retryFor time.Duration) (behind, direct store.Store, proxy *faultproxy.HTTP, data []byte) {
	t.Helper()
	server := startS3(t)
	url := bucketURL(t, server)
	proxy = faultproxy.NewHTTP(t, server.URL)
	direct = open(t, url, store.S3Options{Endpoint: server.URL})
	behind = open(t, url, store.S3Options{Endpoint: proxy.URL, RetryFor: retryFor})
	data = noise(3<<20, 1)
	if _, err := direct.Put(t.Context(), "x", bytes.NewReader(data), store.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	return behind, direct, proxy, data
}

func noise(n int, seed uint64) []byte {
	b := make([]byte, n)
	var key [32]byte
	key[0] = byte(seed)
	_, _ = rand.NewChaCha8(key).Read(b)
	return b
}

func TestADownloadGoesOnWhereItBroke(t *testing.T) {
	behind, _, proxy, data := stored(t, time.Minute)
	for name, rules := range map[string][]faultproxy.Rule{
		"cut once":                 {{Method: http.MethodGet, Path: "/x", CutBody: 1 << 20, Times: 1}},
		"cut at once":              {{Method: http.MethodGet, Path: "/x", CutBody: faultproxy.AtOnce, Times: 1}},
		"cut again and again":      {{Method: http.MethodGet, Path: "/x", CutBody: 400 << 10, Times: 6}},
		"cut, then 503 for a time": {{Method: http.MethodGet, Path: "/x", CutBody: 1 << 20, Times: 1}, {Method: http.MethodGet, Path: "/x", Skip: 1, Status: 503, Times: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			proxy.Clear()
			proxy.Add(rules...)
			before := len(proxy.Requests())
			got, err := get(behind, t.Context(), "x")
			if err != nil || !bytes.Equal(got, data) {
				t.Fatalf("%d bytes, %v; want the %d stored", len(got), err, len(data))
			}
			for _, r := range proxy.Requests()[before+1:] {
				if r.Header.Get("If-Match") == "" && r.Header.Get("Range") != "" {
					t.Errorf("asked for the rest of whatever is there now: %v", r.Header)
				}
			}
		})
	}
}

func TestADownloadThatAlwaysBreaksEnds(t *testing.T) {
	behind, _, proxy, _ := stored(t, time.Second)
	proxy.Add(faultproxy.Rule{Method: http.MethodGet, Path: "/x", CutBody: faultproxy.AtOnce})
	if _, err := get(behind, t.Context(), "x"); err == nil {
		t.Error("got an object from a link that passes nothing")
	}
	proxy.Clear()
	proxy.Add(faultproxy.Rule{Method: http.MethodGet, Path: "/x", CutBody: 1 << 10})
	if _, err := get(behind, t.Context(), "x"); !errors.Is(err, store.ErrTruncated) {
		t.Errorf("got %v from a link that passes a thousandth, want ErrTruncated", err)
	}
	if n := len(proxy.Requests()); n > 200 {
		t.Errorf("%d requests for one object", n)
	}
}

// Two objects never mix.
func TestADownloadNeverGoesOnInAnotherObject(t *testing.T) {
	behind, direct, proxy, _ := stored(t, time.Minute)
	proxy.Add(faultproxy.Rule{Method: http.MethodGet, Path: "/x", CutBody: 1 << 20, Times: 1})
	body, _, err := behind.Get(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if _, err := io.ReadFull(body, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if _, err := direct.Put(t.Context(), "x", bytes.NewReader(noise(3<<20, 2)), store.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, body); !errors.Is(err, store.ErrChanged) {
		t.Errorf("got %v, want ErrChanged", err)
	}
}

// Not every store knows If-Match, or Range.
func TestARestThatIsNotTheRestIsRefused(t *testing.T) {
	setCredentials(t)
	data := bytes.Repeat([]byte("0123456789"), 100)
	for name, tc := range map[string]struct {
		etag, version, contentRange string
		want                        error
	}{
		"the rest":           {"e", "", "bytes 400-999/1000", nil},
		"of another object":  {"f", "", "bytes 400-999/1000", store.ErrChanged},
		"of another version": {"e", "v2", "bytes 400-999/1000", store.ErrChanged},
		"from elsewhere":     {"e", "", "bytes 500-999/1000", store.ErrTruncated},
		"the whole again":    {"e", "", "", store.ErrTruncated},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				h := w.Header()
				h.Set("Last-Modified", time.Unix(1, 0).UTC().Format(http.TimeFormat))
				if r.Header.Get("Range") == "" {
					h.Set("ETag", `"e"`)
					h.Set("Content-Length", fmt.Sprint(len(data)))
					_, _ = w.Write(data[:400])
					return
				}
				h.Set("ETag", `"`+tc.etag+`"`)
				if tc.version != "" {
					h.Set("X-Amz-Version-Id", tc.version)
				}
				rest := data
				if tc.contentRange != "" {
					h.Set("Content-Range", tc.contentRange)
					rest = data[400:]
					w.WriteHeader(http.StatusPartialContent)
				}
				_, _ = w.Write(rest)
			}))
			defer srv.Close()
			got, err := get(open(t, "s3://bkt/", quick(srv.URL)), t.Context(), "x")
			if !errors.Is(err, tc.want) || !bytes.HasPrefix(data, got) || tc.want == nil && len(got) != len(data) {
				t.Errorf("got %d bytes, %v; want %v", len(got), err, tc.want)
			}
		})
	}
}
