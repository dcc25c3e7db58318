package snapshot_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"

	"github.com/etcdkit/etcdkit/snapshot"
)

// A decision of a restore must be the same for the same file, whatever the
// machine: members of one cluster are restored apart.
func TestAPlanDecidesTheSameWhateverTheNumberOfCores(t *testing.T) {
	for name, tc := range map[string]struct {
		file []byte
		bump bool
	}{
		"Kubernetes":                         {kubernetes(t), true},
		"another program with such words":    {testdata(t, "words.db"), false},
		"the same after deletions":           {testdata(t, "words-deleted.db"), false},
		"Kubernetes behind many other words": {manyPrefixes(t), true},
	} {
		t.Run(name, func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
			var first snapshot.Facts
			for try := range 50 {
				runtime.GOMAXPROCS(1 + try%8)
				src := snapshot.RestoreSource{Name: name, Reader: bytes.NewReader(tc.file), At: bytes.NewReader(tc.file), Size: int64(len(tc.file))}
				facts, err := snapshot.PlanFacts(t.Context(), src, snapshot.RestoreOptions{Bump: snapshot.Bump{Auto: true}, SkipHashCheck: true})
				if err != nil {
					t.Fatal(err)
				}
				if try == 0 {
					first = facts
				}
				if facts != first || (facts.Bump.By == snapshot.KubernetesBump) != tc.bump {
					t.Fatalf("try %d: %+v, the first one was %+v; bump is %t, want %t", try, facts, first, facts.Bump.By > 0, tc.bump)
				}
			}
		})
	}
}

func testdata(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// manyPrefixes returns a database with more prefixes that might be Kubernetes'
// than are remembered. The right one comes last.
func manyPrefixes(t *testing.T) []byte {
	t.Helper()
	var puts []*mvccpb.KeyValue
	put := func(key, value string) {
		puts = append(puts, &mvccpb.KeyValue{Key: []byte(key), Value: []byte(value)})
	}
	for i := range 5000 {
		put(fmt.Sprintf("/app/%d/secrets/a", i), `{"kind":"Mail","apiVersion":"1"}`)
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(puts), func(i, j int) { puts[i], puts[j] = puts[j], puts[i] })
	put("/zzz/secrets/n/a", `{"kind":"Secret","apiVersion":"v1"}`)
	put("/zzz/pods/n/a", `{"kind":"Pod","apiVersion":"v1"}`)
	return database(t, puts)
}

// database makes a database file that holds puts in this order.
func database(t testing.TB, puts []*mvccpb.KeyValue) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoFreelistSync: true, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		if _, err := tx.CreateBucket([]byte("meta")); err != nil {
			return err
		}
		keys, err := tx.CreateBucket([]byte("key"))
		if err != nil {
			return err
		}
		for i, kv := range puts {
			rev := int64(i + 2)
			kv.CreateRevision, kv.ModRevision, kv.Version = rev, rev, 1
			value, err := proto.Marshal(kv)
			if err != nil {
				return err
			}
			key := append(binary.BigEndian.AppendUint64(nil, uint64(rev)), append([]byte{'_'}, make([]byte, 8)...)...)
			if err := keys.Put(key, value); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
