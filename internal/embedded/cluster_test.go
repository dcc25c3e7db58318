package embedded_test

import (
	"os"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/embedded"
)

func client(t *testing.T, endpoints ...string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: endpoints})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestThreeMembersServeOneKeyspaceAndLeaveNothingBehind(t *testing.T) {
	cluster, err := embedded.Start(t.Context(), embedded.Options{Members: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	if _, err := client(t, cluster.Endpoints()[0]).Put(t.Context(), "a", "1"); err != nil {
		t.Fatal(err)
	}
	resp, err := client(t, cluster.Endpoints()[2]).Get(t.Context(), "a")
	if err != nil || len(resp.Kvs) != 1 || string(resp.Kvs[0].Value) != "1" {
		t.Errorf("get from another member: %v, %v; want the value written", resp, err)
	}
	if err := cluster.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(cluster.Dir()); !os.IsNotExist(err) {
		t.Errorf("stat %s after Close: %v, want it gone", cluster.Dir(), err)
	}
}

func TestAStoppedMemberComesBackWithItsData(t *testing.T) {
	cluster, err := embedded.Start(t.Context(), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	member := cluster.Members[0]
	if _, err := client(t, member.Endpoint()).Put(t.Context(), "a", "1"); err != nil {
		t.Fatal(err)
	}
	member.Stop()
	if err := member.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	resp, err := client(t, member.Endpoint()).Get(t.Context(), "a")
	if err != nil || resp.Count != 1 {
		t.Errorf("get after a restart: %v, %v; want one key", resp, err)
	}
}

func TestMoreMembersThanPossibleAreRefused(t *testing.T) {
	if _, err := embedded.Start(t.Context(), embedded.Options{Members: 6}); err == nil {
		t.Error("six members started, want an error")
	}
}
