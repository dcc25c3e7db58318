package etcdtest_test

import (
	"context"
	"os"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/testing/certs"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/internal/testing/reference"
)

func count(t *testing.T, c *clientv3.Client, prefix string) int64 {
	t.Helper()
	resp, err := c.Get(t.Context(), prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	return resp.Count
}

func TestEveryVersionServesAndKeepsItsDataOverAKill(t *testing.T) {
	for _, program := range reference.Servers() {
		t.Run(string(program), func(t *testing.T) {
			t.Parallel()
			servers := etcdtest.StartServers(t, etcdtest.ServerOptions{Program: program})
			c := etcdtest.Client(t, servers.Endpoints()...)
			etcdtest.Fill(t, c, "k/", 250, 10)
			servers.Members[0].Kill()
			servers.Members[0].Start()
			status, err := c.Status(t.Context(), servers.Members[0].Endpoint)
			if err != nil {
				t.Fatal(err)
			}
			if got := count(t, c, "k/"); got != 250 || status.Version != program.Version() {
				t.Errorf("%d keys in version %s, want 250 in %s", got, status.Version, program.Version())
			}
		})
	}
}

func TestMembersTalkTLSAndAskForClientCertificates(t *testing.T) {
	ca := certs.NewCA(t)
	servers := etcdtest.StartServers(t, etcdtest.ServerOptions{Members: 3, CA: ca, ClientCerts: true, PeerTLS: true})
	c := etcdtest.ClientTLS(t, ca, []certs.Pair{ca.Client(t, "someone")}, servers.Endpoints()...)
	etcdtest.Fill(t, c, "k/", 1, 10)
	if got := count(t, c, "k/"); got != 1 {
		t.Errorf("%d keys, want 1", got)
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := etcdtest.ClientTLS(t, ca, nil, servers.Endpoints()...).Get(ctx, "k/"); err == nil {
		t.Error("a client without a certificate was served")
	}
}

func TestAPausedMemberAnswersAgainOnceResumed(t *testing.T) {
	servers := etcdtest.StartServers(t, etcdtest.ServerOptions{})
	c := etcdtest.Client(t, servers.Endpoints()...)
	servers.Members[0].Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := c.Get(ctx, "a"); err == nil {
		t.Error("a paused member answered")
	}
	servers.Members[0].Resume()
	etcdtest.Until(t, "an answer", func(ctx context.Context) bool {
		_, err := c.Get(ctx, "a")
		return err == nil
	})
}

func TestAnEmbeddedClusterTakesTLSAndAuthentication(t *testing.T) {
	ca := certs.NewCA(t)
	cluster := etcdtest.Start(t, embedded.Options{Configure: etcdtest.TLS(t, ca, false)})
	c := etcdtest.ClientTLS(t, ca, nil, cluster.Endpoints()...)
	etcdtest.EnableAuth(t, c, "rootpw", etcdtest.User{Name: "ann", Password: "annpw", Prefix: "ann/"})
	if _, err := c.Get(t.Context(), "ann/"); err == nil {
		t.Error("a client without a name was served")
	}
	ann := etcdtest.ClientOf(t, clientv3.Config{
		Endpoints: cluster.Endpoints(), TLS: ca.ClientConfig(t), Username: "ann", Password: "annpw",
	})
	if _, err := ann.Put(t.Context(), "ann/a", "1"); err != nil {
		t.Errorf("put under her own prefix: %v", err)
	}
	if _, err := ann.Put(t.Context(), "bob/a", "1"); err == nil {
		t.Error("ann wrote under another's prefix")
	}
}

func TestADataDirectoryCanBeFilledBeforeTheStart(t *testing.T) {
	first := etcdtest.StartServers(t, etcdtest.ServerOptions{})
	etcdtest.Fill(t, etcdtest.Client(t, first.Endpoints()...), "k/", 7, 10)
	first.Members[0].Stop()

	second := etcdtest.NewServers(t, etcdtest.ServerOptions{})
	if err := os.Rename(first.Members[0].DataDir, second.Members[0].DataDir); err != nil {
		t.Fatal(err)
	}
	second.Start()
	if got := count(t, etcdtest.Client(t, second.Endpoints()...), "k/"); got != 7 {
		t.Errorf("%d keys, want 7", got)
	}
}
