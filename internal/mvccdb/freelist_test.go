package mvccdb_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/etcdkit/etcdkit/internal/mvccdb"
)

// With the list, bbolt takes the free pages that it would find by itself, and
// a database without any grows. Either way the list is gone afterwards.
func TestAFreelistSparesBoltTheWalk(t *testing.T) {
	t.Parallel()
	b := kubernetes(t)
	b = b[:len(b)-sha256.Size]
	for name, use := range map[string]func([]mvccdb.Run) []mvccdb.Run{
		"of the free pages": func(free []mvccdb.Run) []mvccdb.Run { return free },
		"of nothing":        func([]mvccdb.Run) []mvccdb.Run { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			before, err := checkBytes(t, b)
			if err != nil {
				t.Fatal(err)
			}
			db, err := mvccdb.Open(bytes.NewReader(b), int64(len(b)))
			if err != nil {
				t.Fatal(err)
			}
			free := use(before.Free)
			patches, err := db.Freelist(free)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "db")
			write(t, path, b, patches)
			listed := changeWithBolt(t, path)
			after, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			report, err := checkBytes(t, after)
			if err != nil {
				t.Fatal(err)
			}
			if want := int(before.FreePages) - 1; free != nil && listed != want { // one holds the list
				t.Errorf("bbolt knows %d free pages, want %d", listed, want)
			}
			if report.DamageCount > 0 || (report.Pages > before.Pages) != (free == nil) || report.Revisions != before.Revisions {
				t.Errorf("%d pages before, %d after; %d revisions; damage %v", before.Pages, report.Pages, report.Revisions, report.Damage)
			}
			again, err := mvccdb.Open(bytes.NewReader(after), int64(len(after)))
			if err != nil {
				t.Fatal(err)
			}
			if patches, err := again.Freelist(report.Free); err != nil || len(patches) == 0 {
				t.Errorf("%d patches, %v: a list stayed in the file", len(patches), err)
			}
		})
	}
}

func write(t *testing.T, path string, b []byte, patches []mvccdb.Patch) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(b)
	for _, p := range patches {
		_, patchErr := f.WriteAt(p.Bytes, p.Offset)
		err = errors.Join(err, patchErr)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// changeWithBolt makes one transaction and returns the number of free pages
// that bbolt knew of before.
func changeWithBolt(t *testing.T, path string) int {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	stats := db.Stats()
	err = db.Update(func(tx *bolt.Tx) error {
		return tx.Bucket([]byte(mvccdb.MetaBucket)).Put([]byte("consistent_index"), make([]byte, 8))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return stats.FreePageN
}
