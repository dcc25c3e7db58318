package secrets_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/secrets"
)

const perMember = 8 // directories made from one member

// A search for the marker by its bytes is the judge: where it stands in any file
// of a data directory, a scan must not end well, whatever the prefix, the state,
// the place and the damage.
func TestNoScanEndsWellOverAMarker(t *testing.T) {
	prefixes := []string{"/registry", "/registry/tenant-b", "/pods/registry", "/a/b/c", "/kubernetes.io"}
	var from string
	marked, well := 0, 0
	for i := range markedDirectories {
		rng := rand.New(rand.NewPCG(14, uint64(i)))
		if i%perMember == 0 {
			from = markedMember(t, prefixes[i/perMember%len(prefixes)], i/perMember%4 == 1, rng)
		}
		dir := copyDir(t, from)
		what := damage(t, dir, rng)
		r, err := secrets.ScanDataDir(t.Context(), dir, secrets.DataDirOptions{})
		if err == nil {
			err = r.Verdict(secrets.DefaultFailOn())
		}
		found := hasMarker(t, dir)
		if found && err == nil {
			t.Errorf("directory %d (%s): the marker is there, and the scan ends well: %v", i, what, r.Places)
		}
		if found {
			marked++
		}
		if err == nil {
			well++
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	if marked == 0 || well == 0 {
		t.Errorf("%d directories had the marker, %d scans ended well: want some of each", marked, well)
	}
	t.Logf("%d of %d directories had the marker, %d scans ended well", marked, markedDirectories, well)
}

// markedMember returns the data directory of a stopped member that holds Secrets
// in random states and places, or, for comparison, encrypted ones alone.
func markedMember(t *testing.T, prefix string, clean bool, rng *rand.Rand) string {
	t.Helper()
	server := etcdtest.Start(t, embedded.Options{})
	c := &cluster{Cluster: server, client: etcdtest.Client(t, server.Endpoints()...), t: t}
	if prefix == "/registry/tenant-b" { // below another one's prefix
		c.put("/registry/namespaces/default", "k8s\x00\n\x0f\n\x02v1\x12\x09Namespace")
		c.put("/registry/pods/a/b", "k8s\x00\n\x09\n\x02v1\x12\x03Pod")
	}
	c.put(prefix+"/namespaces/default", "k8s\x00\n\x0f\n\x02v1\x12\x09Namespace")
	values := []string{
		inClear, `{"kind":"Secret","apiVersion":"v1","x":"PLAINTEXT-MARKER"}`, "\n {\"kind\":\"Secret\",\"x\":\"PLAINTEXT-MARKER\"}",
		"kind: Secret # PLAINTEXT-MARKER", "k8s:enc:aescbc:v1:key1:PLAINTEXT-MARKER", "k8s:enc:rot13:v1:key1:PLAINTEXT-MARKER",
	}
	if clean {
		values = []string{encrypted}
	}
	for n := range 1 + rng.IntN(8) {
		key := fmt.Sprintf("%s/secrets/ns/s%d", prefix, n)
		c.put(key, values[rng.IntN(len(values))])
		switch rng.IntN(3) {
		case 0:
			c.put(key, encrypted)
		case 1:
			c.do("delete", func(ctx context.Context) error { _, err := c.client.Delete(ctx, key); return err })
		}
	}
	if rng.IntN(2) == 0 {
		c.compact()
		if rng.IntN(2) == 0 {
			c.defrag()
		}
	}
	c.put(prefix+"/configmaps/ns/last", "k8s\x00\n\x0f\n\x02v1\x12\x09ConfigMap")
	c.Members[0].Stop()
	dir := copyDir(t, c.Members[0].DataDir())
	path, data, end := segment(t, dir)
	writeFile(t, path, data[:min(end+4096, len(data))]) // the rest is zeroes, and costs time
	return dir
}

// damage does one thing to a data directory, and says what.
func damage(t *testing.T, dir string, rng *rand.Rand) string {
	t.Helper()
	member := filepath.Join(dir, "member")
	db, wal := filepath.Join(member, "snap", "db"), filepath.Join(member, "wal")
	path, log, end := segment(t, dir)
	file, err := os.ReadFile(db)
	if err != nil {
		t.Fatal(err)
	}
	garbage := make([]byte, 8<<rng.IntN(10))
	for i := range garbage {
		garbage[i] = byte(rng.Uint32())
	}
	over := func(data []byte, at int, what []byte) []byte { copy(data[at:], what); return data }
	move := func(from, to string) {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	switch rng.IntN(11) {
	case 0:
		writeFile(t, path, over(log, rng.IntN(end), garbage))
		return "garbage in the log"
	case 1:
		writeFile(t, path, over(log, rng.IntN(end)&^511, make([]byte, 512)))
		return "a sector of zeroes in the log"
	case 2:
		writeFile(t, path, log[:rng.IntN(end)])
		return "a log cut off"
	case 3:
		writeFile(t, db, over(file, 4096*(2+rng.IntN(len(file)/4096-2)), make([]byte, 4096)))
		return "a page of zeroes"
	case 4:
		writeFile(t, db, file[:rng.IntN(len(file))])
		return "a database cut off"
	case 5:
		writeFile(t, db, over(file, 0, make([]byte, 2*4096)))
		return "no meta pages"
	case 6:
		move(wal, filepath.Join(dir, "wal.old"))
		return "an old log"
	case 7:
		move(db, db+".bak")
		return "a copy of the database"
	case 8:
		writeFile(t, db+".tmp.1", over(bytes.Clone(file), rng.IntN(len(file)), garbage))
		return "a damaged copy of the database"
	case 9:
		kept := filepath.Join(dir, "member.old-20260101T000000Z")
		if err := os.CopyFS(kept, os.DirFS(member)); err != nil {
			t.Fatal(err)
		}
		return "an old member"
	}
	return "none"
}

func hasMarker(t *testing.T, dir string) (found bool) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		found = found || bytes.Contains(data, []byte("PLAINTEXT-MARKER"))
		return errors.Join(err)
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
