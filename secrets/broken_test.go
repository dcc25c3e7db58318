package secrets_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/secrets"
)

// copyDir copies a data directory whose member may be running.
func copyDir(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

func scanDir(t *testing.T, dir string) *secrets.Report {
	t.Helper()
	r, err := secrets.ScanDataDir(t.Context(), dir, secrets.DataDirOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// stopped returns the data directory of a member that stopped, after it wrote
// one Secret in clear and n encrypted ones.
func stopped(t *testing.T, n int) string {
	t.Helper()
	c := newCluster(t)
	c.put("/registry/secrets/ns/a", inClear)
	for range n {
		c.put("/registry/secrets/ns/b", encrypted+strings.Repeat("x", 608))
	}
	c.Members[0].Stop()
	return copyDir(t, c.Members[0].DataDir())
}

// segment returns the log's only segment, and where its records end.
func segment(t *testing.T, dir string) (path string, data []byte, end int) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	if err != nil || len(paths) != 1 {
		t.Fatalf("%v, segments %v", err, paths)
	}
	if data, err = os.ReadFile(paths[0]); err != nil {
		t.Fatal(err)
	}
	return paths[0], data, len(bytes.TrimRight(data, "\x00"))
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestALogIsReadUpToItsTornTail(t *testing.T) {
	dir := stopped(t, 20)
	path, data, _ := segment(t, dir)
	last := bytes.LastIndex(data, []byte(encrypted))
	for name, torn := range map[string][]byte{
		"cut off":            data[:last+100],
		"cut off in a frame": data[:last-2],
		"zeroes after a sector": append(bytes.Clone(data[:(last+600)&^511]),
			make([]byte, len(data)-(last+600)&^511)...),
	} {
		t.Run(name, func(t *testing.T) {
			writeFile(t, path, torn)
			r := scanDir(t, dir)
			if got := outsideFree(r); got != "live 1 history 0 wal 1" || r.DamageCount > 0 {
				t.Errorf("got %s, damage %v", got, r.Damage)
			}
		})
	}
}

func TestADamagedRecordIsNamedAndTheLogReadOn(t *testing.T) {
	dir := stopped(t, 5)
	path, data, _ := segment(t, dir)
	data[bytes.Index(data, []byte(encrypted))+60] ^= 1
	writeFile(t, path, data)
	r := scanDir(t, dir)
	if got := summary(r, secrets.WAL); got != "secrets wal plain 1\nsecrets wal encrypted aescbc key1 5\n" {
		t.Errorf("got\n%s", got)
	}
	if len(r.Damage) != 1 || !strings.Contains(r.Damage[0], filepath.Base(path)) || r.Places[3].Read {
		t.Errorf("damage %v, places %+v", r.Damage, r.Places)
	}
}

func TestWhatARepairCutOffIsSearched(t *testing.T) {
	dir := stopped(t, 5)
	path, data, end := segment(t, dir)
	// A repair zeroes the length of the first bad frame, as it were, and leaves what follows.
	first := bytes.Index(data, []byte("PLAINTEXT-MARKER"))
	frame := bytes.LastIndex(data[:first], []byte{0, 0, 0, 0, 0}) - 3
	copy(data[frame:frame+8], make([]byte, 8))
	writeFile(t, path, data[:end])
	if got := outsideFree(scanDir(t, dir)); got != "live 1 history 0 wal 1" {
		t.Errorf("got %s", got)
	}
}

func TestDatabasesThatALeaderSentCountAsLog(t *testing.T) {
	dir := stopped(t, 0)
	writeFile(t, filepath.Join(dir, "member", "snap", "0000000000000009.snap.db"), mixed(t).bytes(t))
	writeFile(t, filepath.Join(dir, "member", "snap", "db.tmp.123"), nil)
	r := scanDir(t, dir)
	// One put in the log, and 11 live and 3 old versions in the database.
	if got := outsideFree(r); got != "live 1 history 0 wal 15" {
		t.Errorf("got %s", got)
	}
	if r.Places[3].Read {
		t.Error("an empty database was taken as read")
	}
}

func (m memory) bytes(t *testing.T) []byte {
	t.Helper()
	b := make([]byte, m.Len())
	if _, err := m.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestALogAloneIsScanned(t *testing.T) {
	dir := stopped(t, 3)
	writeFile(t, filepath.Join(dir, "member", "snap", "db"), []byte("not a database"))
	r := scanDir(t, dir)
	if got := outsideFree(r); got != "live 0 history 0 wal 1" || r.Places[0].Read || !r.Places[3].Read {
		t.Errorf("got %s, places %+v", got, r.Places)
	}
	if err := os.RemoveAll(filepath.Join(dir, "member", "wal")); err != nil {
		t.Fatal(err)
	}
	if _, err := secrets.ScanDataDir(t.Context(), dir, secrets.DataDirOptions{}); err == nil {
		t.Error("nothing was left to read, and no error")
	}
}

// The first objects of a running member are in the log some moments before they
// are in the database.
func TestFirstObjectsInTheLogAlone(t *testing.T) {
	dir, young := stopped(t, 3), newCluster(t)
	young.Members[0].Stop()
	empty, err := os.ReadFile(filepath.Join(young.Members[0].DataDir(), "member", "snap", "db"))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "member", "snap", "db"), empty)
	r := scanDir(t, dir)
	if got := outsideFree(r); got != "live 0 history 0 wal 1" || !r.Places[0].Read || !r.Places[3].Read {
		t.Errorf("got %s, places %+v", got, r.Places)
	}
	opts := secrets.DataDirOptions{Options: secrets.Options{Prefixes: []string{"/elsewhere"}}}
	if _, err := secrets.ScanDataDir(t.Context(), dir, opts); !errors.Is(err, secrets.ErrNotKubernetes) {
		t.Errorf("under a prefix without objects: %v, want ErrNotKubernetes", err)
	}
}

func TestADatabaseWithoutItsLogIsScanned(t *testing.T) {
	dir := stopped(t, 0)
	if err := os.RemoveAll(filepath.Join(dir, "member", "wal")); err != nil {
		t.Fatal(err)
	}
	r := scanDir(t, dir)
	if got := outsideFree(r); got != "live 1 history 0 wal 0" || r.Places[3].Read {
		t.Errorf("got %s, places %+v", got, r.Places)
	}
}

func TestDamagedPagesAreNamedAndTheScanGoesOn(t *testing.T) {
	whole := mixed(t).bytes(t)
	full := scanBytes(t, whole)
	pages := len(whole) / 4096
	named := 0
	for page := 2; page < pages; page++ {
		broken := bytes.Clone(whole)
		copy(broken[page*4096:], bytes.Repeat([]byte{0xa5}, 64))
		r, err := secrets.ScanFile(t.Context(), memory{bytes.NewReader(broken)}, secrets.Options{Prefixes: []string{"/registry"}})
		if err != nil {
			t.Errorf("page %d: %v", page, err)
			continue
		}
		named += min(r.DamageCount, 1)
		// What a broken page hides from the tree is found in free pages.
		if total(r) < total(full)/2 {
			t.Errorf("page %d: only %d of %d versions found", page, total(r), total(full))
		}
	}
	if named == 0 {
		t.Error("no damage was named")
	}
}

func scanBytes(t *testing.T, data []byte) *secrets.Report {
	t.Helper()
	r, err := secrets.ScanFile(t.Context(), memory{bytes.NewReader(data)}, secrets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func total(r *secrets.Report) int {
	n := 0
	for _, c := range r.Summary {
		n += c.Count
	}
	return n
}

// A member that writes all the time must not fail a scan of its directory.
func TestARunningMemberIsScanned(t *testing.T) {
	c := newCluster(t)
	c.put("/registry/secrets/ns/a", inClear)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			_, _ = c.client.Put(ctx, "/registry/secrets/ns/b", encrypted)
			_, _ = c.client.Put(ctx, "/registry/configmaps/ns/c", "k8s\x00"+strings.Repeat("x", 5000))
		}
	}()
	etcdtest.Until(t, "the member to write the file", func(context.Context) bool {
		r, err := secrets.ScanDataDir(t.Context(), c.Members[0].DataDir(), secrets.DataDirOptions{})
		return err == nil && r.Summary != nil && outsideFree(r) == "live 1 history 0 wal 1"
	})
	for range 10 {
		r := c.dataDir()
		told := r.ChangedWhileReading && len(r.Damage) > 0 // the member was faster than the scan, which says so
		if got := outsideFree(r); !told && !strings.HasPrefix(got, "live 1 history 0") {
			t.Errorf("got %s, changed while reading %v, damage %v", got, r.ChangedWhileReading, r.Damage)
		}
	}
	cancel()
	<-done
}
