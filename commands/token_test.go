package commands_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

// A JWT takes the place of user and password, under either name.
func TestJWT(t *testing.T) {
	t.Parallel()
	tokenSpec := jwtKeys(t)
	c := etcdtest.Start(t, embedded.Options{Configure: func(_ int, cfg *embed.Config) { cfg.AuthToken = tokenSpec }})
	client := etcdtest.Client(t, c.Endpoints()...)
	etcdtest.EnableAuth(t, client, "rootpw")
	resp, err := client.Authenticate(t.Context(), "root", "rootpw")
	if err != nil {
		t.Fatal(err)
	}
	endpoints := "--endpoints=" + strings.Join(c.Endpoints(), ",")
	for name, tc := range map[string]struct {
		flags      []string
		code       int
		want, hint string
	}{
		"a good token":            {[]string{"--auth-jwt-token", resp.Token}, 0, "", ""},
		"it beats a wrong user":   {[]string{"--auth-jwt-token", resp.Token, "--user", "root:wrong"}, 0, "", ""},
		"one that nobody signed":  {[]string{"--auth-jwt-token", "junk"}, 1, "invalid auth token", "hint: the token is not valid"},
		"none":                    {nil, 1, "user name is empty", "hint: authentication is on"},
		"a password is as good":   {[]string{"--user", "root:rootpw"}, 0, "", ""},
		"a wrong one is not told": {[]string{"--user", "root:hunter2"}, 1, "authentication failed", "hint: check --user and --password"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, program := range []string{"etcdkit", "etcdctl"} {
				code, _, stderr := run(t, append([]string{program, "get", "a", endpoints}, tc.flags...)...)
				wantCode := tc.code
				if program == "etcdctl" && strings.Contains(tc.want, "authentication failed") {
					wantCode = 2 // the client could not be made
				}
				if code != wantCode || !strings.Contains(stderr, tc.want) || program == "etcdkit" && !strings.Contains(stderr, tc.hint) {
					t.Errorf("%s: exit code %d and %q; want %d and %q, %q", program, code, stderr, wantCode, tc.want, tc.hint)
				}
				if strings.Contains(stderr, "hunter2") || strings.Contains(stderr, resp.Token) {
					t.Errorf("%s told a secret", program)
				}
			}
		})
	}
}

// jwtKeys makes a pair of keys and returns etcd's setting for it.
func jwtKeys(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, block := range map[string]*pem.Block{
		"private": {Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)},
		"public":  {Type: "PUBLIC KEY", Bytes: public},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return fmt.Sprintf("jwt,pub-key=%s,priv-key=%s,sign-method=RS256,ttl=%s", filepath.Join(dir, "public"), filepath.Join(dir, "private"), 10*time.Minute)
}
