package snapshot_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/snapshot"
)

// take saves a snapshot of the member behind a client.
func take(t *testing.T, c *clientv3.Client) []byte {
	t.Helper()
	r, err := c.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return b
}

// kubernetes is a snapshot of a real Kubernetes keyspace, from etcd 3.7.
func kubernetes(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "kubernetes.db"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func sourceOf(b []byte) snapshot.RestoreSource {
	return snapshot.RestoreSource{Name: "backup.db", Reader: bytes.NewReader(b), Size: int64(len(b))}
}

// single returns the options for a cluster of one member.
func single(dir string) snapshot.RestoreOptions {
	return snapshot.RestoreOptions{
		DataDir: dir, Name: "m1", PeerURLs: []string{"http://127.0.0.1:2380"}, InitialCluster: "m1=http://127.0.0.1:2380",
		Bump: snapshot.Bump{Auto: true}, Now: time.Now,
	}
}

// memberOf returns the options for a member of a cluster that is to be started.
func memberOf(s *etcdtest.Servers, i int) snapshot.RestoreOptions {
	m := s.Members[i]
	return snapshot.RestoreOptions{
		DataDir: m.DataDir, Name: m.Name, PeerURLs: []string{m.PeerURL}, InitialCluster: s.InitialCluster(),
		Bump: snapshot.Bump{Auto: true}, Now: time.Now,
	}
}

func restoreTo(t *testing.T, b []byte, opts snapshot.RestoreOptions) *snapshot.Restored {
	t.Helper()
	r, err := snapshot.Restore(t.Context(), sourceOf(b), opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// everything returns all keys with their values.
func everything(t *testing.T, c *clientv3.Client) map[string]string {
	t.Helper()
	resp, err := c.Get(t.Context(), "\x00", clientv3.WithFromKey())
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, kv := range resp.Kvs {
		all[string(kv.Key)] = string(kv.Value)
	}
	return all
}

func TestARestoredMemberServesTheSameKeys(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, embedded.Options{})
	c := etcdtest.Client(t, cluster.Endpoints()...)
	etcdtest.Fill(t, c, "k/", 300, 3000)
	lease, err := c.Grant(t.Context(), 3600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Put(t.Context(), "leased", "v", clientv3.WithLease(lease.ID)); err != nil {
		t.Fatal(err)
	}
	etcdtest.EnableAuth(t, c, "secret", etcdtest.User{Name: "ann", Password: "pw", Prefix: "k/"})
	root := clientv3.Config{Endpoints: cluster.Endpoints(), Username: "root", Password: "secret"}
	c = etcdtest.ClientOf(t, root)
	want, b := everything(t, c), take(t, c)

	servers := etcdtest.NewServers(t, etcdtest.ServerOptions{})
	r := restoreTo(t, b, memberOf(servers, 0))
	if r.Report.State.Leases != 1 || !r.Report.State.AuthEnabled || !slices.Equal(r.Report.State.Users, []string{"ann", "root"}) {
		t.Errorf("report %+v, want one lease, and users ann and root with auth on", r.Report.State)
	}
	servers.Start()
	root.Endpoints = servers.Endpoints()
	c = etcdtest.ClientOf(t, root)
	if got := everything(t, c); len(got) != len(want) || got["k/000299"] != want["k/000299"] || got["leased"] != "v" {
		t.Errorf("%d keys after the restore, want the same %d", len(got), len(want))
	}
	ttl, err := c.TimeToLive(t.Context(), lease.ID, clientv3.WithAttachedKeys())
	if err != nil || ttl.TTL <= 0 || len(ttl.Keys) != 1 {
		t.Errorf("lease after the restore: %v, %v; want it with its key", ttl, err)
	}
	anyone := etcdtest.Client(t, servers.Endpoints()...)
	if _, err := anyone.Get(t.Context(), "k/000001"); err == nil {
		t.Error("the restored member serves without a password")
	}
}

// etcd-io/etcd#7192: a key with a lease made a restore panic.
func TestLeasesSurviveARestore(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, embedded.Options{})
	c := etcdtest.Client(t, cluster.Endpoints()...)
	lease, err := c.Grant(t.Context(), 3600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Put(t.Context(), "a", "1", clientv3.WithLease(lease.ID)); err != nil {
		t.Fatal(err)
	}
	if r := restoreTo(t, take(t, c), single(filepath.Join(t.TempDir(), "d"))); r.Report.State.Leases != 1 {
		t.Errorf("%d leases reported, want 1", r.Report.State.Leases)
	}
}

// etcd-io/etcd#16028, kubernetes/kubernetes#118501: after a restore the
// revision goes backwards, and watch caches stay stale.
func TestAKubernetesKeyspaceMovesOnAndOldWatchesAreRefused(t *testing.T) {
	t.Parallel()
	servers := etcdtest.NewServers(t, etcdtest.ServerOptions{})
	r := restoreTo(t, kubernetes(t), memberOf(servers, 0))
	if r.Kubernetes != "/registry" || r.BumpedBy != snapshot.KubernetesBump || r.Revision != 294+snapshot.KubernetesBump {
		t.Errorf("restored at revision %d of %q, bumped by %d", r.Revision, r.Kubernetes, r.BumpedBy)
	}
	servers.Start()
	c := etcdtest.Client(t, servers.Endpoints()...)
	resp, err := c.Get(t.Context(), "/registry/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || resp.Count != 229 || resp.Header.Revision < r.Revision {
		t.Errorf("%v, %v; want 229 keys at revision %d", resp, err, r.Revision)
	}
	watch := <-c.Watch(t.Context(), "/registry/", clientv3.WithPrefix(), clientv3.WithRev(200))
	if watch.CompactRevision != r.Revision {
		t.Errorf("a watch from revision 200 got %+v, want a refusal with compact revision %d", watch, r.Revision)
	}
}

func TestAnotherKeyspaceKeepsItsRevision(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, embedded.Options{})
	c := etcdtest.Client(t, cluster.Endpoints()...)
	etcdtest.Fill(t, c, "k/", 10, 10)
	if r := restoreTo(t, take(t, c), single(filepath.Join(t.TempDir(), "d"))); r.BumpedBy != 0 || r.Compacted || r.Revision != r.SourceRevision {
		t.Errorf("restored at %d from %d, bumped by %d", r.Revision, r.SourceRevision, r.BumpedBy)
	}
}

func TestMembersRestoredApartAgreeAndAForgottenOneIsRefused(t *testing.T) {
	t.Parallel()
	b := kubernetes(t)
	servers := etcdtest.NewServers(t, etcdtest.ServerOptions{Members: 3})
	later := time.Now().Add(7 * time.Minute)
	for i := range servers.Members {
		opts := memberOf(servers, i)
		opts.Now = func() time.Time { return later }
		if r := restoreTo(t, b, opts); !strings.HasPrefix(r.Token, "etcdkit-") {
			t.Errorf("token %q, want one made from the snapshot", r.Token)
		}
	}
	servers.Start()
	c := etcdtest.Client(t, servers.Endpoints()...)
	var hashes []*clientv3.HashKVResponse
	for _, ep := range servers.Endpoints() {
		h, err := c.HashKV(t.Context(), ep, 0)
		if err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, h)
	}
	for _, h := range hashes[1:] {
		if h.Hash != hashes[0].Hash || h.CompactRevision != hashes[0].CompactRevision || h.Header.ClusterId != hashes[0].Header.ClusterId {
			t.Errorf("members differ: %+v and %+v", hashes[0], h)
		}
	}
	status, err := c.Status(t.Context(), servers.Endpoints()[2])
	if err != nil {
		t.Fatal(err)
	}

	// The third member forgets the restore: it comes back with data of a
	// cluster on the same addresses with the old token.
	servers.Members[2].Kill()
	if err := os.RemoveAll(servers.Members[2].DataDir); err != nil {
		t.Fatal(err)
	}
	old := memberOf(servers, 2)
	old.Token = "etcd-cluster"
	if r := restoreTo(t, b, old); r.ClusterID == status.Header.ClusterId || r.MemberID == status.Header.MemberId {
		t.Errorf("the old cluster has id %x like the restored one", r.ClusterID)
	}
	servers.Members[2].Launch()
	etcdtest.Until(t, "the old member to be refused", func(context.Context) bool {
		return strings.Contains(servers.Members[2].Log(), "cluster ID mismatch")
	})
}

// kubernetes/kubernetes#86812: lease keys of dead API servers survive.
func TestKeysOfAPIServersAreReportedAndStay(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, embedded.Options{})
	c := etcdtest.Client(t, cluster.Endpoints()...)
	for key, value := range map[string]string{"/registry/masterleases/10.0.0.1": "k8s\x00", "/registry/masterleases/10.0.0.2": "k8s\x00", "/registry/pods/a/b": "k8s\x00"} {
		if _, err := c.Put(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Delete(t.Context(), "/registry/masterleases/10.0.0.2"); err != nil {
		t.Fatal(err)
	}
	r := restoreTo(t, take(t, c), single(filepath.Join(t.TempDir(), "d")))
	if want := []string{"/registry/masterleases/10.0.0.1"}; !slices.Equal(r.StaleKeys, want) || r.Report.LiveKeys != 2 {
		t.Errorf("stale %q of %d keys, want %q of 2", r.StaleKeys, r.Report.LiveKeys, want)
	}
}
