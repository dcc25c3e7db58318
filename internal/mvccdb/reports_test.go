package mvccdb_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/mvccdb"
)

// etcd-io/etcd#8815, #11157: status changed the file that it read.
func TestReadingLeavesTheFileAsItWas(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "backup.db")
	if err := os.WriteFile(path, kubernetes(t), 0o400); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-48 * time.Hour).Truncate(time.Second)
	if err := os.Chtimes(path, long, long); err != nil {
		t.Fatal(err)
	}
	check(t, path)
	if _, err := open(t, path).HashKV(t.Context(), 0, mvccdb.Options{}); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(after, kubernetes(t)) || !info.ModTime().Equal(long) {
		t.Errorf("the file changed at %s", info.ModTime())
	}
}

// etcd-io/etcd#19253: the number of keys counted rows of every bucket.
func TestLiveKeysRevisionsAndInternalRecordsAreApart(t *testing.T) {
	t.Parallel()
	r, err := checkBytes(t, kubernetes(t))
	if err != nil || r.LiveKeys != 229 || r.Revisions != 293 || r.Tombstones != 10 {
		t.Fatalf("%d keys in %d revisions, %d of them deletions, %v; want 229, 293 and 10", r.LiveKeys, r.Revisions, r.Tombstones, err)
	}
	internal := 0
	for _, b := range r.Buckets {
		if b.Name != mvccdb.KeyBucket {
			internal += b.Elements
		}
	}
	if internal != 13 {
		t.Errorf("%d internal records, want 13", internal)
	}
}
