package snapshot_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/mvccdb"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/snapshot"
)

// lockWait is short: nobody lets go of a lock in these tests.
const lockWait = 100 * time.Millisecond

func inspect(t *testing.T, path string) *snapshot.File {
	t.Helper()
	f, err := snapshot.OpenFile(t.Context(), path, lockWait)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func savedAs(t *testing.T, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "backup.db")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func keysAt(t *testing.T, f *snapshot.File, prefix string, rev int64) []string {
	t.Helper()
	var keys []string
	err := f.Keys(t.Context(), snapshot.KeysOptions{Prefix: []byte(prefix), Revision: rev}, func(k snapshot.KeyInfo) error {
		keys = append(keys, string(k.Key))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(keys)
	return keys
}

func TestTheKeysInAFileAreThoseThatEtcdServed(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, embedded.Options{})
	c := etcdtest.Client(t, cluster.Endpoints()...)
	etcdtest.Fill(t, c, "k/", 300, 50)
	for _, key := range []string{"k/000007", "k/000008"} {
		if _, err := c.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	put, err := c.Put(t.Context(), "k/000007", "again")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Put(t.Context(), "later", ""); err != nil {
		t.Fatal(err)
	}
	f := inspect(t, savedAs(t, take(t, c)))
	for rev := put.Header.Revision - 3; rev <= put.Header.Revision+1; rev++ {
		resp, err := c.Get(t.Context(), "\x00", clientv3.WithFromKey(), clientv3.WithKeysOnly(), clientv3.WithRev(rev))
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, kv := range resp.Kvs {
			want = append(want, string(kv.Key))
		}
		if got := keysAt(t, f, "", rev); !slices.Equal(got, want) {
			t.Errorf("revision %d: %d keys, etcd has %d", rev, len(got), len(want))
		}
	}
	if got := keysAt(t, f, "lat", 0); !slices.Equal(got, []string{"later"}) {
		t.Errorf("keys by prefix %q, want one", got)
	}
}

// etcd-io/etcd#13310, #14645: which prefixes and kinds use the space?
func TestUsageAddsUpToTheWholeKeyspace(t *testing.T) {
	t.Parallel()
	u, err := inspect(t, savedAs(t, kubernetes(t))).Usage(t.Context(), snapshot.UsageOptions{Top: 3})
	if err != nil {
		t.Fatal(err)
	}
	if u.Kubernetes != "/registry" || u.Total.Keys != 229 || u.Total.Revisions != 293 {
		t.Errorf("%+v of %q, want 229 keys in 293 revisions under /registry", u.Total, u.Kubernetes)
	}
	var sum snapshot.Use
	for _, p := range u.Prefixes {
		sum.Keys, sum.Bytes, sum.Revisions, sum.HistoryBytes = sum.Keys+p.Keys, sum.Bytes+p.Bytes, sum.Revisions+p.Revisions, sum.HistoryBytes+p.HistoryBytes
	}
	if sum != u.Total {
		t.Errorf("the prefixes add up to %+v, all is %+v", sum, u.Total)
	}
	i := slices.IndexFunc(u.Resources, func(r snapshot.Use) bool { return r.Name == "secrets" })
	if i < 0 || u.Resources[i].Keys != 29 {
		t.Errorf("resources %+v, want 29 secrets", u.Resources)
	}
	if len(u.Largest) != 3 || u.Largest[0].Key != "/registry/secrets/payments/web-tls" || u.Revised[0].Revisions != 12 {
		t.Errorf("largest %+v, most revised %+v", u.Largest, u.Revised)
	}
}

// etcd-io/etcd#20217: which member is best to recover from?
func TestTheDirectoryWithTheNewestEntryIsTheBest(t *testing.T) {
	t.Parallel()
	servers := etcdtest.StartServers(t, etcdtest.ServerOptions{Members: 3})
	c := etcdtest.Client(t, servers.Endpoints()[0])
	etcdtest.Fill(t, c, "k/", 100, 10)
	// The third member misses the last writes, the second one is damaged.
	servers.Members[2].Stop()
	etcdtest.Fill(t, c, "l/", 200, 10)
	servers.Members[0].Stop()
	servers.Members[1].Kill()
	dirs := []string{servers.Members[2].DataDir, servers.Members[0].DataDir, servers.Members[1].DataDir}
	damage(t, snapshot.Database(dirs[2]))

	all, best, err := snapshot.Compare(t.Context(), places(dirs), lockWait)
	if err != nil {
		t.Fatal(err)
	}
	if best != 1 || all[2].Usable() || !all[0].Usable() {
		t.Errorf("best is %d; %+v, %+v, %+v", best, all[0], all[1], all[2])
	}
	_, behind := all[0].LastEntry()
	if _, ahead := all[1].LastEntry(); ahead <= behind {
		t.Errorf("the best one's last entry is %d, the other's %d", ahead, behind)
	}
}

// damage breaks a page in the middle of a database's keys.
func damage(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for page := 2; page < len(b)/4096; page++ {
		copy(b[page*4096+8:], []byte{0x20})
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAFileThatARunningEtcdHoldsIsWaitedForAndNamed(t *testing.T) {
	t.Parallel()
	servers := etcdtest.StartServers(t, etcdtest.ServerOptions{})
	dir := servers.Members[0].DataDir
	if _, err := snapshot.OpenFile(t.Context(), dir, lockWait); !errors.Is(err, snapshot.ErrLocked) {
		t.Errorf("open: %v, want that it is locked", err)
	}
	if _, err := snapshot.DefragmentDataDir(t.Context(), dir, lockWait, nil); !errors.Is(err, snapshot.ErrLocked) {
		t.Errorf("defragment: %v, want that it is locked", err)
	}
	opts := single(dir)
	opts.MoveAside = true
	if _, err := snapshot.Restore(t.Context(), sourceOf(kubernetes(t)), opts); !errors.Is(err, snapshot.ErrInUse) {
		t.Errorf("restore over it: %v, want a refusal", err)
	}
	servers.Members[0].Stop()
	inspect(t, dir)
}

// places are data directories with their logs inside.
func places(dirs []string) []snapshot.Place {
	var all []snapshot.Place
	for _, dir := range dirs {
		all = append(all, snapshot.Place{DataDir: dir})
	}
	return all
}

func TestAStatusOfEveryIntegrity(t *testing.T) {
	t.Parallel()
	good := kubernetes(t)
	bare := good[:len(good)-32]
	for name, tc := range map[string]struct {
		bytes    []byte
		manifest string
		want     snapshot.Integrity
	}{
		"a snapshot":      {bytes: good, want: snapshot.Proven},
		"a changed value": {bytes: flip(good, 120_000), want: snapshot.Broken},
		"no hash (gardener/etcd-backup-restore#749)": {bytes: bare, want: snapshot.Unknown},
		"a part of the hash":                         {bytes: good[:len(good)-7], want: snapshot.Broken},
		"something after the hash":                   {bytes: append(slices.Clone(good), "more"...), want: snapshot.Broken},
		"no hash, but a manifest":                    {bytes: bare, manifest: `{"snapshotSHA256":"b72d3341d40721b49c42bc46890b738e35e0b9fc44a57aff973a1918531be0b4"}`, want: snapshot.Proven},
		"no hash, and a manifest's":                  {bytes: bare, manifest: `{"snapshotSHA256":"00"}`, want: snapshot.Broken},
		"no hash, and a broken page":                 {bytes: zeroPage(bare), want: snapshot.Broken},
		"a leaf page of nothing (etcd-io/bbolt#581)": {bytes: zeroPage(good), want: snapshot.Broken},
		"a changed page":                             {bytes: flip(good, 40*4096+200), want: snapshot.Broken},
		"a manifest that is no reader":               {bytes: bare, manifest: `{`, want: snapshot.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			path := savedAs(t, tc.bytes)
			if tc.manifest != "" {
				if err := os.WriteFile(path+".json", []byte(tc.manifest), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s, err := snapshot.Status(t.Context(), inspect(t, path), nil)
			if err != nil || s.Integrity != tc.want {
				t.Errorf("integrity %v, %v; want %s", s, err, tc.want)
			}
		})
	}
}

func TestDefragmentingADataDirectoryKeepsItsKeys(t *testing.T) {
	t.Parallel()
	servers := etcdtest.StartServers(t, etcdtest.ServerOptions{})
	c := etcdtest.Client(t, servers.Endpoints()...)
	etcdtest.Fill(t, c, "k/", 6000, 1000)
	del, err := c.Delete(t.Context(), "k/", clientv3.WithRange("k/005500"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Compact(t.Context(), del.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	servers.Members[0].Stop()
	dir := servers.Members[0].DataDir
	before := hashOf(t, dir)
	d, err := snapshot.DefragmentDataDir(t.Context(), dir, lockWait, nil)
	if err != nil || d.After >= d.Before {
		t.Errorf("defragmented: %+v, %v; want a smaller file", d, err)
	}
	if after := hashOf(t, dir); after != before {
		t.Errorf("hash %+v after, %+v before", after, before)
	}
	servers.Members[0].Start()
}

func hashOf(t *testing.T, path string) mvccdb.HashKV {
	t.Helper()
	f, err := snapshot.OpenFile(t.Context(), path, lockWait)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, err := f.HashKV(t.Context(), 0, mvccdb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return h
}
