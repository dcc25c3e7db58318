// Package etcdtest starts etcd clusters for tests: in the test's own process,
// which is fast, or as processes of upstream's programs, which can be killed,
// paused and be of another version.
package etcdtest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"golang.org/x/crypto/bcrypt"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/testing/certs"
)

// wait bounds everything that a healthy machine does within seconds.
const wait = 90 * time.Second

// Start starts an embedded cluster that ends with the test. Its passwords are
// cheap to check: a login waits for no processor.
func Start(t testing.TB, opts embedded.Options) *embedded.Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	configure := opts.Configure
	opts.Configure = func(i int, cfg *embed.Config) {
		cfg.BcryptCost = uint(bcrypt.MinCost)
		if configure != nil {
			configure(i, cfg)
		}
	}
	cluster, err := embedded.Start(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	})
	return cluster
}

// Client returns a client of the endpoints that is closed with the test.
func Client(t testing.TB, endpoints ...string) *clientv3.Client {
	t.Helper()
	return ClientOf(t, clientv3.Config{Endpoints: endpoints})
}

// ClientTLS returns a client that trusts the authority and shows the pairs.
func ClientTLS(t testing.TB, ca *certs.CA, pairs []certs.Pair, endpoints ...string) *clientv3.Client {
	t.Helper()
	return ClientOf(t, clientv3.Config{Endpoints: endpoints, TLS: ca.ClientConfig(t, pairs...)})
}

// ClientOf returns a client that is closed with the test. It logs nothing.
func ClientOf(t testing.TB, cfg clientv3.Config) *clientv3.Client {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	if cfg.DialTimeout == 0 {
		cfg.DialTimeout = wait
	}
	c, err := clientv3.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Fill writes n keys, prefix + a number of six digits, with values of the size.
func Fill(t testing.TB, c *clientv3.Client, prefix string, n, size int) {
	t.Helper()
	const batch = 100 // etcd allows 128 operations in a transaction
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	value := make([]byte, size)
	for i := range value {
		value[i] = 'a' + byte(i%26)
	}
	for i := 0; i < n; i += batch {
		var ops []clientv3.Op
		for j := i; j < min(i+batch, n); j++ {
			ops = append(ops, clientv3.OpPut(fmt.Sprintf("%s%06d", prefix, j), string(value)))
		}
		if _, err := c.Txn(ctx).Then(ops...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
}

// User is an account for EnableAuth, with rights on the keys under Prefix
// alone.
type User struct{ Name, Password, Prefix string }

// EnableAuth turns authentication on: with a root user of that password, and
// the users given.
func EnableAuth(t testing.TB, c *clientv3.Client, rootPassword string, users ...User) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, u := range users {
		role := "role-" + u.Name
		end := clientv3.GetPrefixRangeEnd(u.Prefix)
		must(c.UserAdd(ctx, u.Name, u.Password))
		must(c.RoleAdd(ctx, role))
		must(c.RoleGrantPermission(ctx, role, u.Prefix, end, clientv3.PermissionType(clientv3.PermReadWrite)))
		must(c.UserGrantRole(ctx, u.Name, role))
	}
	must(c.UserAdd(ctx, "root", rootPassword))
	must(c.UserGrantRole(ctx, "root", "root"))
	must(c.AuthEnable(ctx))
}

// TLS returns what embedded.Options.Configure needs to serve clients over
// TLS. With clientCerts, clients must show a certificate of the authority.
func TLS(t testing.TB, ca *certs.CA, clientCerts bool) func(int, *embed.Config) {
	t.Helper()
	pair := ca.Server(t)
	return func(_ int, cfg *embed.Config) {
		cfg.ListenClientUrls[0].Scheme = "https"
		cfg.AdvertiseClientUrls[0].Scheme = "https"
		cfg.ClientTLSInfo = transport.TLSInfo{CertFile: pair.CertFile, KeyFile: pair.KeyFile}
		if clientCerts { // etcd takes a trusted authority alone as the wish, too
			cfg.ClientTLSInfo.TrustedCAFile, cfg.ClientTLSInfo.ClientCertAuth = ca.File, true
		}
	}
}

// Until polls the condition until it holds, and fails the test if it does not
// within a generous time. It says what was waited for.
func Until(t testing.TB, what string, holds func(context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if holds(ctx) {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waited %s for %s: %v", wait, what, context.Cause(ctx))
		case <-tick.C:
		}
	}
}
