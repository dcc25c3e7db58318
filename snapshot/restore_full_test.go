//go:build full

package snapshot_test

import (
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/internal/testing/reference"
)

// A restored directory boots in the version of etcd that wrote the snapshot,
// with its keys, leases and users.
func TestARestoredMemberBootsInTheVersionThatWroteIt(t *testing.T) {
	for _, program := range reference.Servers() {
		t.Run(string(program), func(t *testing.T) {
			t.Parallel()
			from := etcdtest.StartServers(t, etcdtest.ServerOptions{Program: program, Members: 3})
			c := etcdtest.Client(t, from.Endpoints()...)
			etcdtest.Fill(t, c, "/registry/pods/default/p-", 500, 700)
			lease, err := c.Grant(t.Context(), 3600)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Put(t.Context(), "/registry/masterleases/10.0.0.1", "k8s\x00", clientv3.WithLease(lease.ID)); err != nil {
				t.Fatal(err)
			}
			del, err := c.Delete(t.Context(), "/registry/pods/default/p-0001", clientv3.WithPrefix())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Compact(t.Context(), del.Header.Revision-1); err != nil {
				t.Fatal(err)
			}
			etcdtest.EnableAuth(t, c, "secret", etcdtest.User{Name: "ann", Password: "pw", Prefix: "/registry/"})
			// One member: another may not know the token yet that it gave.
			root := clientv3.Config{Endpoints: from.Endpoints()[:1], Username: "root", Password: "secret"}
			c = etcdtest.ClientOf(t, root)
			want, b := everything(t, c), take(t, c)

			to := etcdtest.NewServers(t, etcdtest.ServerOptions{Program: program, Members: 3})
			for i := range to.Members {
				restoreTo(t, b, memberOf(to, i))
			}
			to.Start()
			root.Endpoints = to.Endpoints()[:1]
			c = etcdtest.ClientOf(t, root)
			if got := everything(t, c); len(got) != len(want) {
				t.Errorf("%d keys after the restore, want %d", len(got), len(want))
			}
			if ttl, err := c.TimeToLive(t.Context(), lease.ID); err != nil || ttl.TTL <= 0 {
				t.Errorf("lease after the restore: %v, %v", ttl, err)
			}
			if _, err := c.Put(t.Context(), "/registry/pods/default/new", "v"); err != nil {
				t.Error(err)
			}
			hashes := make(map[uint32]bool)
			for _, ep := range to.Endpoints() {
				h, err := c.HashKV(t.Context(), ep, 0)
				if err != nil {
					t.Fatal(err)
				}
				hashes[h.Hash] = true
			}
			if len(hashes) != 1 {
				t.Errorf("hashes %v, want one", hashes)
			}
		})
	}
}
