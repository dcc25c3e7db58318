package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/store"
	"github.com/etcdkit/etcdkit/internal/testing/certs"
	"github.com/etcdkit/etcdkit/internal/testing/s3test"
)

func TestNetworkErrorsNameTheFlag(t *testing.T) {
	setCredentials(t)
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	secure, plain := httptest.NewTLSServer(ok), httptest.NewServer(ok)
	defer secure.Close()
	defer plain.Close()
	for name, tc := range map[string]struct{ endpoint, hint string }{
		"unknown authority": {secure.URL, "--s3-ca-file"},
		"plain HTTP":        {"https://" + strings.TrimPrefix(plain.URL, "http://"), "http://"},
		"nobody listens":    {"http://127.0.0.1:1", "--s3-endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := open(t, "s3://bkt/", quick(tc.endpoint)).List(t.Context(), "")
			if !errors.Is(err, store.ErrUnreachable) || !strings.Contains(hint.Of(err), tc.hint) {
				t.Errorf("got %v, hint %q; want ErrUnreachable, hint with %q", err, hint.Of(err), tc.hint)
			}
		})
	}
}

// rancher/rke2#8119: credentials of a role are fetched by IMDSv2 for every run.
func TestRoleCredentialsComeFromIMDSv2(t *testing.T) {
	clearCredentials(t)
	const token = "imds-token"
	imds := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token":
			fmt.Fprint(w, token)
		case r.Header.Get("X-aws-ec2-metadata-token") != token:
			w.WriteHeader(http.StatusUnauthorized)
		case strings.HasSuffix(r.URL.Path, "security-credentials/"):
			fmt.Fprint(w, "backup-role")
		default:
			fmt.Fprintf(w, `{"Code":"Success","AccessKeyId":"ROLEKEY","SecretAccessKey":"s","Token":"session","Expiration":%q}`,
				time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
		}
	}))
	defer imds.Close()
	var auth, session atomic.Value
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		auth.Store(r.Header.Get("Authorization"))
		session.Store(r.Header.Get("X-Amz-Security-Token"))
	}))
	defer srv.Close()
	opts := quick(srv.URL)
	opts.MetadataEndpoint = imds.URL
	if _, err := open(t, "s3://bkt/", opts).Put(t.Context(), "x", strings.NewReader("1"), store.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, _ := auth.Load().(string); !strings.Contains(got, "ROLEKEY") || session.Load() != "session" {
		t.Errorf("request was signed with %q, session %q", got, session.Load())
	}
}

func TestMissingCredentialsAreToldAsSuch(t *testing.T) {
	clearCredentials(t)
	_, err := store.Open(t.Context(), "s3://bkt/", store.S3Options{Endpoint: "http://127.0.0.1:1", MetadataEndpoint: "http://127.0.0.1:1"})
	if !errors.Is(err, store.ErrConfig) || !strings.Contains(hint.Of(err), "AWS_ACCESS_KEY_ID") {
		t.Errorf("got %v, hint %q", err, hint.Of(err))
	}
}

// k3s-io/k3s#12244: both styles of addressing.
func TestAddressingStyles(t *testing.T) {
	setCredentials(t)
	var host, path atomic.Value
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		host.Store(r.Host)
		path.Store(r.URL.Path)
	}))
	defer srv.Close()
	proxied := quick("http://store.example")
	proxied.Proxy = srv.URL
	for style, want := range map[string]string{
		"path": "store.example /bucket/p/x",
		"dns":  "bucket.store.example /p/x",
	} {
		proxied.Addressing = style
		if _, err := open(t, "s3://bucket/p/", proxied).Put(t.Context(), "x", strings.NewReader("1"), store.PutOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(host.Load(), " ", path.Load()); got != want {
			t.Errorf("%s: %s, want %s", style, got, want)
		}
	}
}

func TestAStoreWithACertificateOfOnesOwnAuthority(t *testing.T) {
	ca := certs.NewCA(t)
	server := s3test.Start(t, s3test.Options{CA: ca})
	server.Setenv(t)
	opts := quick(server.URL)
	location := bucketURL(t, server)
	_, err := open(t, location, opts).List(t.Context(), "")
	if !errors.Is(err, store.ErrUnreachable) || !strings.Contains(hint.Of(err), "--s3-ca-file") {
		t.Errorf("without the authority: %v, hint %q", err, hint.Of(err))
	}
	opts.CAFile = ca.File
	s := open(t, location, opts)
	data := random(t, store.MinPartSize+1)
	if _, err := s.Put(t.Context(), "x", bytes.NewReader(data), store.PutOptions{PartSize: store.MinPartSize}); err != nil {
		t.Fatal(err)
	}
	if got, err := get(s, t.Context(), "x"); err != nil || !bytes.Equal(got, data) {
		t.Errorf("get: %d bytes, %v", len(got), err)
	}
}

// k3s-io/k3s#8918; rancher/rke2#1698: a wrong key is a clean error
// that shows no secret.
func TestAWrongSecretIsACleanErrorThatShowsNoSecret(t *testing.T) {
	server := startS3(t)
	location := bucketURL(t, server)
	const wrong = "wrong-secret-of-the-test"
	t.Setenv("AWS_SECRET_ACCESS_KEY", wrong)
	_, err := open(t, location, quick(server.URL)).Put(t.Context(), "x", strings.NewReader("1"), store.PutOptions{})
	if !errors.Is(err, store.ErrDenied) || strings.Contains(err.Error()+hint.Of(err), wrong) {
		t.Errorf("got %v, hint %q; want ErrDenied without the secret", err, hint.Of(err))
	}
}
