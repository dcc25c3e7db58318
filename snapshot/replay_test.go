package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/internal/testing/reference"
	"github.com/etcdkit/etcdkit/snapshot"
)

// lazyBackend keeps a member's writes out of its database: they are in the log
// alone until the member ends.
var lazyBackend = []string{"--backend-batch-interval", "1h", "--backend-batch-limit", "1000000"}

// restoreDir restores the data directory of a stopped member to a member of
// another cluster.
func restoreDir(t *testing.T, from *etcdtest.Server, to *etcdtest.Servers, i int) *snapshot.Restored {
	t.Helper()
	d, err := snapshot.OpenDataDir(t.Context(), from.DataDir, from.WALDir, lockWait)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	opts := memberOf(to, i)
	opts.WALDir = to.Members[i].WALDir
	r, err := snapshot.Restore(t.Context(), d.RestoreSource(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What etcd itself makes of its log is what a restore makes of it: keys with
// their revisions and leases, users, roles, alarms, versions, also where entries
// are refused when they are applied.
func TestARestoreAppliesTheLogAsEtcdDoes(t *testing.T) {
	t.Parallel()
	programs := reference.Servers()
	if !fullRun {
		programs = programs[len(programs)-1:]
	}
	for _, program := range programs {
		t.Run(string(program), func(t *testing.T) {
			t.Parallel()
			from := etcdtest.StartServers(t, etcdtest.ServerOptions{Program: program})
			m := from.Members[0]
			m.Stop()
			old := *m // with the database of now, and the log of later
			old.DataDir = filepath.Join(t.TempDir(), "old")
			fail(t, os.CopyFS(old.DataDir, os.DirFS(m.DataDir)))
			m.Start()
			before := contentOf(t, inhabit(t, m.Endpoint))
			m.Kill()
			old.WALDir = filepath.Join(m.DataDir, "member", "wal")

			to := etcdtest.NewServers(t, etcdtest.ServerOptions{Program: program})
			r := restoreDir(t, &old, to, 0)
			if r.Replayed.Entries < 100 {
				t.Fatalf("%+v; the database should hold nothing", r.Replayed)
			}
			to.Start()
			got := contentOf(t, rootOf(t, to.Endpoints()[0]))
			from.Start()
			want := contentOf(t, rootOf(t, from.Endpoints()[0]))
			if want != before {
				t.Errorf("etcd itself came back with\n%s\nbefore it was\n%s", want, before)
			}
			if got != want {
				t.Errorf("the restore has\n%s\netcd itself\n%s", got, want)
			}
		})
	}
}

// inhabit writes something of every kind that a log can hold, with entries that
// are refused only when they are applied, and returns root's client.
func inhabit(t *testing.T, endpoint string) *clientv3.Client {
	t.Helper()
	ctx, c := t.Context(), etcdtest.Client(t, endpoint)
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	etcdtest.Fill(t, c, "/a/", 300, 50)
	for i := range 100 {
		must(c.Put(ctx, fmt.Sprintf("/b/%d", i%10), fmt.Sprint(i)))
	}
	kept, err := c.Grant(ctx, 3600)
	must(kept, err)
	gone, err := c.Grant(ctx, 1800)
	must(gone, err)
	must(c.Put(ctx, "/leased/kept", "v", clientv3.WithLease(kept.ID)))
	must(c.Put(ctx, "/leased/gone", "v", clientv3.WithLease(gone.ID)))
	must(c.Revoke(ctx, gone.ID))
	if _, err := c.Put(ctx, "/leased/never", "v", clientv3.WithLease(12345)); err == nil {
		t.Fatal("a put with a lease that does not exist was accepted")
	}
	must(c.Txn(ctx).If(clientv3.Compare(clientv3.Version("/b/1"), ">", 3)).Then(clientv3.OpPut("/txn", "yes"), clientv3.OpDelete("/b/2")).
		Else(clientv3.OpPut("/txn", "no")).Commit())
	del, err := c.Delete(ctx, "/a/0001", clientv3.WithPrefix())
	must(del, err)
	must(c.Compact(ctx, del.Header.Revision-5, clientv3.WithCompactPhysical()))
	etcdtest.EnableAuth(t, c, "secret", etcdtest.User{Name: "ann", Password: "pw", Prefix: "/b/"})
	root := rootOf(t, endpoint)
	must(root.Put(ctx, "/b/after", "auth"))
	must(root.RoleAdd(ctx, "late"))
	must(root.Put(ctx, "/b/last", "one"))
	return root
}

func rootOf(t *testing.T, endpoint string) *clientv3.Client {
	t.Helper()
	return etcdtest.ClientOf(t, clientv3.Config{Endpoints: []string{endpoint}, Username: "root", Password: "secret"})
}

// contentOf writes down all that a member holds.
func contentOf(t *testing.T, c *clientv3.Client) string {
	t.Helper()
	ctx := t.Context()
	var all strings.Builder
	kvs, err := c.Get(ctx, "\x00", clientv3.WithFromKey())
	fail(t, err)
	for _, kv := range kvs.Kvs {
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(kv)
		fail(t, err)
		fmt.Fprintf(&all, "%q\n", b)
	}
	hash, err := c.HashKV(ctx, c.Endpoints()[0], 0)
	fail(t, err)
	fmt.Fprintf(&all, "revision %d, compacted %d, hash %d\n", kvs.Header.Revision, hash.CompactRevision, hash.Hash)
	leases, err := c.Leases(ctx)
	fail(t, err)
	for _, l := range leases.Leases {
		ttl, err := c.TimeToLive(ctx, l.ID, clientv3.WithAttachedKeys())
		fail(t, err)
		fmt.Fprintf(&all, "lease %d of %d: %q\n", l.ID, ttl.GrantedTTL, ttl.Keys)
	}
	users, err := c.UserList(ctx)
	fail(t, err)
	for _, u := range users.Users {
		roles, err := c.UserGet(ctx, u)
		fail(t, err)
		fmt.Fprintf(&all, "user %s: %v\n", u, roles.Roles)
	}
	roles, err := c.RoleList(ctx)
	fail(t, err)
	for _, r := range roles.Roles {
		perm, err := c.RoleGet(ctx, r)
		fail(t, err)
		fmt.Fprintf(&all, "role %s: %v\n", r, perm.Perm)
	}
	status, err := c.AuthStatus(ctx)
	fail(t, err)
	alarms, err := c.AlarmList(ctx)
	fail(t, err)
	fmt.Fprintf(&all, "auth %t at %d, alarms %v\n", status.Enabled, status.AuthRevision, alarms.Alarms)
	return all.String()
}

func fail(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Restoring apart from copies of one directory gives one cluster, and from
// another state of it another one.
func TestTheTokenKnowsTheLog(t *testing.T) {
	t.Parallel()
	from := etcdtest.StartServers(t, etcdtest.ServerOptions{Flags: lazyBackend})
	m := from.Members[0]
	etcdtest.Fill(t, etcdtest.Client(t, from.Endpoints()...), "k/", 100, 10)
	m.Kill()
	copied := filepath.Join(t.TempDir(), "copy")
	fail(t, os.CopyFS(copied, os.DirFS(m.DataDir)))
	tokens := make([]string, 3)
	for i, dir := range []string{m.DataDir, m.DataDir, copied} {
		if i == 2 {
			m.Start()
			etcdtest.Fill(t, etcdtest.Client(t, from.Endpoints()...), "l/", 100, 10)
			m.Kill()
			dir = m.DataDir
		}
		d, err := snapshot.OpenDataDir(t.Context(), dir, "", lockWait)
		fail(t, err)
		facts, err := snapshot.PlanFacts(t.Context(), d.RestoreSource(), single(filepath.Join(t.TempDir(), "plan")))
		fail(t, errors.Join(err, d.Close()))
		d, err = snapshot.OpenDataDir(t.Context(), dir, "", lockWait)
		fail(t, err)
		r, err := snapshot.Restore(t.Context(), d.RestoreSource(), single(filepath.Join(t.TempDir(), "d")))
		fail(t, errors.Join(err, d.Close()))
		if tokens[i] = r.Token; facts.Token != r.Token {
			t.Errorf("the plan has token %s, the restore %s", facts.Token, r.Token)
		}
	}
	if tokens[0] != tokens[1] || tokens[0] == tokens[2] {
		t.Errorf("tokens %q, want two equal ones and another", tokens)
	}
}

// A log that cannot be taken in whole is refused with its place, and nothing is
// left behind: only a last record that was cut off is dropped.
func TestADamagedLogIsRefused(t *testing.T) {
	t.Parallel()
	from := etcdtest.StartServers(t, etcdtest.ServerOptions{Flags: lazyBackend})
	m := from.Members[0]
	etcdtest.Fill(t, etcdtest.Client(t, from.Endpoints()...), "k/", 2000, 100)
	m.Kill()
	segments, err := filepath.Glob(filepath.Join(m.DataDir, "member", "wal", "*.wal"))
	fail(t, err)
	slices.Sort(segments)
	whole, err := os.ReadFile(segments[0])
	fail(t, err)
	end := len(whole)
	for end > 0 && whole[end-1] == 0 {
		end--
	}
	whole = whole[:end+8192] // most of the file is zeros
	all := openKeys(t, m.DataDir)
	for name, tc := range map[string]struct {
		change func(b []byte) []byte
		keys   int // -1 is refused
	}{
		"as it is":                          {func(b []byte) []byte { return b }, all},
		"the last record cut off":           {func(b []byte) []byte { clear(b[end-700:]); return b }, all - 1},
		"the file cut off":                  {func(b []byte) []byte { return b[:end-300] }, all - 1},
		"a bit flipped in the middle":       {func(b []byte) []byte { b[end/2] ^= 4; return b }, -1},
		"a bit flipped in the last record":  {func(b []byte) []byte { b[end-20] ^= 4; return b }, -1},
		"a sector of zeros in the middle":   {func(b []byte) []byte { clear(b[end/2&^511:][:512]); return b }, -1},
		"the length of a record made large": {func(b []byte) []byte { b[lengthBefore(b, end/2)+5] = 1; return b }, -1},
		"the length of a record made 0":     {func(b []byte) []byte { clear(b[lengthBefore(b, end/2):][:8]); return b }, -1},
		"nothing but zeros":                 {func(b []byte) []byte { clear(b); return b }, -1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "copy")
			fail(t, os.Mkdir(dir, 0o700))
			fail(t, os.WriteFile(filepath.Join(dir, filepath.Base(segments[0])), tc.change(slices.Clone(whole)), 0o600))
			d, err := snapshot.OpenDataDir(t.Context(), m.DataDir, dir, lockWait)
			if tc.keys < 0 {
				if err == nil {
					t.Errorf("accepted: %+v", d.Log)
					d.Close()
				}
				return
			}
			fail(t, err)
			defer d.Close()
			r, err := snapshot.Restore(t.Context(), d.RestoreSource(), single(filepath.Join(t.TempDir(), "d")))
			fail(t, err)
			if r.Report.LiveKeys < tc.keys-100 || r.Report.LiveKeys > all || tc.keys < all != r.Replayed.Torn {
				t.Errorf("%d keys of %d, %+v", r.Report.LiveKeys, all, r.Replayed)
			}
		})
	}
}

// lengthBefore returns where a record's length stands, at or before at.
func lengthBefore(b []byte, at int) int {
	next, before := 0, 0
	for next < at {
		before = next
		size := int(b[next]) | int(b[next+1])<<8 | int(b[next+2])<<16
		if b[next+7]&0x80 != 0 {
			size += int(b[next+7] & 7)
		}
		next += 8 + size
	}
	return before
}

func openKeys(t *testing.T, dir string) int {
	t.Helper()
	d, err := snapshot.OpenDataDir(t.Context(), dir, "", lockWait)
	fail(t, err)
	defer d.Close()
	r, err := snapshot.Restore(t.Context(), d.RestoreSource(), single(filepath.Join(t.TempDir(), "d")))
	fail(t, err)
	return r.Report.LiveKeys
}

// A restore that is interrupted while it applies a log ends, and leaves nothing.
func TestApplyingALogEndsWithItsContext(t *testing.T) {
	t.Parallel()
	from := etcdtest.StartServers(t, etcdtest.ServerOptions{Flags: lazyBackend})
	m := from.Members[0]
	etcdtest.Fill(t, etcdtest.Client(t, from.Endpoints()...), "k/", 100, 10)
	m.Kill()
	d, err := snapshot.OpenDataDir(t.Context(), m.DataDir, "", lockWait)
	fail(t, err)
	defer d.Close()
	ctx, cancel := context.WithCancel(t.Context())
	target := filepath.Join(t.TempDir(), "d")
	opts := single(target)
	opts.Progress = func(int64, int64) { cancel() }
	if _, err := snapshot.Restore(ctx, d.RestoreSource(), opts); err == nil {
		t.Error("an interrupted restore succeeded")
	}
	if _, err := os.Stat(target); !os.IsNotExist(err) {
		t.Errorf("left behind: %v", err)
	}
}

// A database that the leader has sent, and that etcd did not put in place before
// it was killed, is newer than the one in place.
func TestADatabaseThatTheLeaderSentCounts(t *testing.T) {
	t.Parallel()
	from := etcdtest.StartServers(t, etcdtest.ServerOptions{})
	m, c := from.Members[0], etcdtest.Client(t, from.Endpoints()...)
	etcdtest.Fill(t, c, "k/", 100, 10)
	m.Stop()
	snapDir := filepath.Join(m.DataDir, "member", "snap")
	old, err := os.ReadFile(filepath.Join(snapDir, "db"))
	fail(t, err)
	m.Start()
	etcdtest.Fill(t, c, "l/", 100, 10)
	m.Stop()
	state, err := inspect(t, m.DataDir).State(t.Context())
	fail(t, err)
	sent := filepath.Join(snapDir, fmt.Sprintf("%016x.snap.db", state.ConsistentIndex))
	fail(t, os.Rename(filepath.Join(snapDir, "db"), sent))
	fail(t, os.WriteFile(filepath.Join(snapDir, "db"), old, 0o600))

	d, err := snapshot.OpenDataDir(t.Context(), m.DataDir, "", lockWait)
	fail(t, err)
	defer d.Close()
	if d.File.Path != sent || d.State.ConsistentIndex != state.ConsistentIndex {
		t.Errorf("takes %s at %d, want %s", d.File.Path, d.State.ConsistentIndex, sent)
	}
	r, err := snapshot.Restore(t.Context(), d.RestoreSource(), single(filepath.Join(t.TempDir(), "d")))
	if err != nil || r.Report.LiveKeys != 200 {
		t.Errorf("restore: %v, %v; want 200 keys", r, err)
	}
	fail(t, os.WriteFile(sent, old[:1000], 0o600))
	if d, err := snapshot.OpenDataDir(t.Context(), m.DataDir, "", lockWait); err == nil {
		d.Close()
		t.Error("a damaged database from the leader was passed over")
	}
}

// Directories of different clusters are not compared, and a directory without
// its log is not the best.
func TestWhatCannotBeComparedIsNotTheBest(t *testing.T) {
	t.Parallel()
	var all []snapshot.Place
	for range 2 {
		s := etcdtest.StartServers(t, etcdtest.ServerOptions{})
		etcdtest.Fill(t, etcdtest.Client(t, s.Endpoints()...), "k/", 10, 10)
		s.Members[0].Stop()
		all = append(all, snapshot.Place{DataDir: s.Members[0].DataDir})
	}
	if _, best, err := snapshot.Compare(t.Context(), all, lockWait); !errors.Is(err, snapshot.ErrClusters) || best != -1 {
		t.Errorf("best is %d, %v; want that they are of different clusters", best, err)
	}
	moved := filepath.Join(t.TempDir(), "wal")
	fail(t, os.Rename(filepath.Join(all[0].DataDir, "member", "wal"), moved))
	if found, best, err := snapshot.Compare(t.Context(), all[:1], lockWait); err != nil || best != -1 || found[0].Usable() {
		t.Errorf("best is %d, %v; want none without its log", best, err)
	}
	if _, err := snapshot.OpenDataDir(t.Context(), all[0].DataDir, "", lockWait); !errors.Is(err, snapshot.ErrNoLog) {
		t.Errorf("opened without its log: %v", err)
	}
	all[0].WALDir = moved
	if _, best, err := snapshot.Compare(t.Context(), all[:1], lockWait); err != nil || best != 0 {
		t.Errorf("best is %d, %v; want the one whose log is elsewhere", best, err)
	}
	all[1].WALDir = moved
	if d, err := snapshot.OpenDataDir(t.Context(), all[1].DataDir, moved, lockWait); err == nil {
		d.Close()
		t.Error("another cluster's log was accepted")
	}
}

// endless counts what is read of it.
type endless struct{ read int64 }

func (e *endless) Read(b []byte) (int, error) {
	clear(b)
	e.read += int64(len(b))
	return len(b), nil
}

func TestSomethingEndlessStopsAtTheFirstPage(t *testing.T) {
	t.Parallel()
	e := &endless{}
	src := snapshot.RestoreSource{Name: "/dev/zero", Reader: e}
	_, err := snapshot.Restore(t.Context(), src, single(filepath.Join(t.TempDir(), "d")))
	_, planErr := snapshot.PlanFacts(t.Context(), src, single(filepath.Join(t.TempDir(), "d")))
	if err == nil || planErr == nil || e.read > 1<<20 {
		t.Errorf("restore: %v, plan: %v, after %d bytes", err, planErr, e.read)
	}
}

// What is beside the member is not etcd's: it stays where it is.
func TestMovingAMemberAsideLeavesWhatIsBesideIt(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "d")
	restoreTo(t, kubernetes(t), single(dir))
	beside := filepath.Join(dir, "name")
	fail(t, os.WriteFile(beside, []byte("m1"), 0o600))
	opts := single(dir)
	if _, err := snapshot.Restore(t.Context(), sourceOf(kubernetes(t)), opts); !errors.Is(err, snapshot.ErrNotEmpty) {
		t.Errorf("restored beside a file: %v", err)
	}
	opts.MoveAside = true
	r := restoreTo(t, kubernetes(t), opts)
	if b, err := os.ReadFile(beside); err != nil || string(b) != "m1" || len(r.MovedTo) != 1 {
		t.Errorf("the file beside the member: %q, %v; moved %v", b, err, r.MovedTo)
	}
	if r.Owner == nil || r.Before == nil || *r.Owner != *r.Before {
		t.Errorf("owner %v, before %v", r.Owner, r.Before)
	}
}
