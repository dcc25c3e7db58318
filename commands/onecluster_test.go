package commands_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/health"
	"github.com/etcdkit/etcdkit/internal/dirfd"
	"github.com/etcdkit/etcdkit/internal/scratch"
)

// written tells what a cluster holds, and how much was proposed to it by others
// than itself.
func written(t *testing.T, client *clientv3.Client) string {
	t.Helper()
	keys, err := client.Get(t.Context(), "", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	leases, err := client.Leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	users, err := client.UserList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	members, err := client.MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint("revision ", keys.Header.Revision, " leases ", leases.Leases, " users ", users.Users, " members ", len(members.Members))
}

// Endpoints of two clusters in one list are refused by every command, before
// anything is sent to either.
func TestNoCommandWritesToOneOfTwoClusters(t *testing.T) {
	t.Parallel()
	one, two := newSession(t), newSession(t)
	before := [2]string{written(t, one.client), written(t, two.client)}
	dir := t.TempDir()
	for i, args := range [][]string{
		{"put", "a", "1"},
		{"get", "a"},
		{"del", "a"},
		{"txn"},
		{"watch", "a"},
		{"compaction", "1"},
		{"lease", "grant", "60"},
		{"lease", "keep-alive", "1"},
		{"lock", "l", "true"},
		{"elect", "e", "me"},
		{"user", "add", "u:p"},
		{"role", "add", "r"},
		{"auth", "enable"},
		{"alarm", "disarm"},
		{"alarm", "recover"},
		{"member", "add", "m9", "--peer-urls", "http://127.0.0.1:1"},
		{"member", "remove", "m1"},
		{"move-leader", "m1"},
		{"downgrade", "enable", "3.5"},
		{"snapshot", "save", filepath.Join(dir, "backup.db")},
		{"snapshot", "save", filepath.Join(dir, "backup.db"), "--cluster"},
		{"make-mirror", one.endpoint},
		{"check", "perf", "--duration", "1s"},
		{"check", "consistency"},
		{"endpoint", "hashkv", "--cluster"},
		{"defrag"},
		{"defrag-all"},
		{"health"},
	} {
		both := []string{one.endpoint, two.endpoint}
		if i%2 == 1 {
			both[0], both[1] = both[1], both[0]
		}
		got := one.run(append(args, "--endpoints", strings.Join(both, ","), "--yes")...)
		if got.code != 2 || !strings.Contains(got.err, "the endpoints belong to more than one cluster") {
			t.Errorf("%q: %+v; want 2 and that there are two clusters", args, got)
		}
	}
	// What only shows each endpoint shows it, and says so first.
	got := one.run("endpoint", "status", "--endpoints", one.endpoint+","+two.endpoint)
	if got.code != 0 || !strings.Contains(got.err, "warning: the endpoints belong to more than one cluster") {
		t.Errorf("endpoint status: %+v", got)
	}
	if after := [2]string{written(t, one.client), written(t, two.client)}; after != before {
		t.Errorf("before %q, after %q", before, after)
	}
}

// A dry run looks at the local lock as well, which stands in where etcd grants
// no lease, and a lock that was taken in etcd before is still held.
func TestADryRunLooksAtTheLocalLock(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	status, err := s.client.Status(t.Context(), s.endpoint)
	if err != nil {
		t.Fatal(err)
	}
	s.put(health.LockKey+"/other", "")
	maintenance := pb.NewMaintenanceClient(s.client.ActiveConnection())
	if _, err := maintenance.Alarm(t.Context(), &pb.AlarmRequest{
		Action: pb.AlarmRequest_ACTIVATE, MemberID: status.Header.MemberId, Alarm: pb.AlarmType_NOSPACE,
	}); err != nil {
		t.Fatal(err)
	}
	state := t.TempDir()
	s.environ = []string{"XDG_STATE_HOME=" + state}
	recoverIn := func(want int, text string, args ...string) {
		t.Helper()
		got := s.run(append([]string{"alarm", "recover", "--no-journal"}, args...)...)
		if got.code != want || !strings.Contains(got.err, text) {
			t.Errorf("%q: %+v; want %d and %q", args, got, want, text)
		}
	}
	recoverIn(5, health.LockKey, "--dry-run")
	recoverIn(5, health.LockKey)
	if _, err := s.client.Delete(t.Context(), health.LockKey+"/other"); err != nil {
		t.Fatal(err)
	}
	recoverIn(0, "", "--dry-run")
	path := filepath.Join(state, "etcdkit", "maintenance.lock")
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a dry run made the lock: %v", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	dir, err := dirfd.Open(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	lock, err := scratch.OpenOrCreate(dir, filepath.Base(path))
	if err != nil {
		t.Fatal(err)
	}
	recoverIn(5, "on this host, see "+path, "--dry-run")
	recoverIn(5, "on this host, see "+path)
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	recoverIn(0, "", "--dry-run")
	recoverIn(0, "")
}
