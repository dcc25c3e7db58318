package etcd_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/etcd"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

func config(endpoints ...string) etcd.Config {
	return etcd.Config{Endpoints: endpoints, DialTimeout: 2 * time.Second, FailFast: true, TLS: etcd.TLS{InsecureTransport: true}}
}

// get reads a key as a command does, and explains a failure.
func get(t *testing.T, c etcd.Config) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	client, err := etcd.Dial(ctx, c)
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = client.Get(ctx, "a")
	return etcd.Diagnose(ctx, c, err)
}

// tlsServer is not an etcd, but fails handshakes as one does.
func tlsServer(t *testing.T, clientAuth tls.ClientAuthType) (endpoint, caFile string) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.TLS = &tls.Config{ClientAuth: clientAuth, MinVersion: tls.VersionTLS12}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL, writeFile(t, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

func TestDiagnose(t *testing.T) {
	cluster := etcdtest.Start(t, embedded.Options{})
	plain := strings.TrimPrefix(cluster.Endpoints()[0], "http://")
	secure, ca := tlsServer(t, tls.NoClientCert)
	mutual, mutualCA := tlsServer(t, tls.RequireAnyClientCert)

	with := func(c etcd.Config, change func(*etcd.Config)) etcd.Config { change(&c); return c }
	for name, tc := range map[string]struct {
		config     etcd.Config
		want, hint string // parts of the message and of the hint
	}{
		"nothing listens":       {config("127.0.0.1:1"), "127.0.0.1:1: connection refused", "--endpoints"},
		"no endpoint listens":   {config("127.0.0.1:1", "127.0.0.1:2"), "127.0.0.1:2: connection refused", "--endpoints"},
		"unknown host":          {config("nosuch.invalid:2379"), "host nosuch.invalid not found", "host name"},
		"malformed endpoint":    {config("http://"), "malformed endpoint", "host:port"},
		"http to a TLS server":  {config(strings.Replace(secure, "https", "http", 1)), "the server speaks TLS", "https://"},
		"https to a plain one":  {config("https://" + plain), "does not speak TLS", "http://"},
		"no CA given":           {config(secure), "not trusted", "--cacert"},
		"the wrong CA":          {with(config(secure), func(c *etcd.Config) { c.TLS.CACert = otherCA(t) }), "not trusted", "is not the CA"},
		"no client certificate": {with(config(mutual), func(c *etcd.Config) { c.TLS.CACert = mutualCA }), "wants a client certificate", "--cert"},
		"a CA file that is not": {with(config(secure), func(c *etcd.Config) { c.TLS.CACert = "/nonexistent/ca" }), "--cacert: open /nonexistent/ca", "path"},
		"a CA file of text":     {with(config(secure), func(c *etcd.Config) { c.TLS.CACert = writeFile(t, []byte("not a certificate")) }), "holds no certificate", "PEM"},
		"a key without a cert":  {with(config(secure), func(c *etcd.Config) { c.TLS.CACert, c.TLS.Key = ca, ca }), "", "--cert and --key go together"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := get(t, tc.config)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(hint.Of(err), tc.hint) {
				t.Errorf("got %q with hint %q; want %q with hint %q", err, hint.Of(err), tc.want, tc.hint)
			}
		})
	}
}

// The port of peers, that of metrics, and that of anything else on the web.
func TestAServerOfHTTPIsNoEtcd(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	err := get(t, config(s.URL))
	if err == nil || err.Error() != s.URL+": the server there speaks HTTP/1.1, not etcd's protocol" || !strings.Contains(hint.Of(err), "client port") {
		t.Errorf("got %v, hint %q", err, hint.Of(err))
	}
}

func TestDiagnoseKnowsTheServersAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"wrong password":    {rpctypes.ErrAuthFailed, "check --user and --password"},
		"no user":           {rpctypes.ErrUserEmpty, "authentication is on"},
		"not permitted":     {rpctypes.ErrPermissionDenied, "lacks a role"},
		"no space":          {rpctypes.ErrNoSpace, "alarm recover"},
		"no leader":         {rpctypes.ErrNoLeader, "lost quorum"},
		"auth is off":       {rpctypes.ErrAuthNotEnabled, "authentication is off"},
		"something unknown": {errors.New("odd"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := etcd.Diagnose(t.Context(), config("127.0.0.1:1"), tc.err)
			if !errors.Is(err, tc.err) || !strings.Contains(hint.Of(err), tc.want) || (tc.want == "") != (hint.Of(err) == "") {
				t.Errorf("got %v with hint %q, want the cause with hint %q", err, hint.Of(err), tc.want)
			}
		})
	}
}

func TestOneLiveEndpointIsEnough(t *testing.T) {
	cluster := etcdtest.Start(t, embedded.Options{})
	if err := get(t, config("127.0.0.1:1", cluster.Endpoints()[0])); err != nil {
		t.Errorf("get through a dead and a live endpoint: %v", err)
	}
}

// otherCA is a well-formed CA that signed nothing here.
func otherCA(t *testing.T) string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func writeFile(t *testing.T, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
