package mvccdb_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	"github.com/etcdkit/etcdkit/internal/mvccdb"
	"github.com/etcdkit/etcdkit/internal/testing/gendb"
)

// Batches share memory: after an error, the next one must not show what is
// left of the one before.
func TestABatchAfterAnErrorIsItsOwn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "db")
	if err := gendb.Write(t.Context(), path, gendb.Options{Keys: 6000, ValueBytes: 1000}); err != nil {
		t.Fatal(err)
	}
	db := open(t, path)
	enough := errors.New("enough")
	batches, records := 0, 0
	opts := mvccdb.Options{Buckets: []string{mvccdb.KeyBucket}, Workers: 1}
	err := mvccdb.Scan(t.Context(), db, opts, func(b *mvccdb.Batch) (int, error) {
		batches++
		records += len(b.Records)
		for _, r := range b.Records {
			if !bytes.HasPrefix(r.Key, []byte("/registry/")) {
				t.Errorf("batch %d: key %q", batches, r.Key)
			}
		}
		return 0, enough
	}, func(int) error { return nil })
	if !errors.Is(err, enough) || records > 6000 {
		t.Errorf("%v after %d records in %d batches", err, records, batches)
	}
}
