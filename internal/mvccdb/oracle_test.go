package mvccdb_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"
)

const (
	mutations = 400
	compacted = 20 // revision
)

// Whatever bit is changed: what bbolt and etcd's own messages read differently
// is found, except in values, the id of a lease, names of keys that have no other
// version, and numbers that refer to versions which a compaction has removed.
func TestWhatEtcdWouldReadDifferentlyIsFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	s := openStore(t, path)
	s.churn(t, rand.New(rand.NewPCG(8, 8)), 60, 200, compacted)
	s.close()
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, err := readByEtcd(path)
	if err != nil {
		t.Fatal(err)
	}
	r, judgedGood := rand.New(rand.NewPCG(7, 7)), 0
	for range mutations {
		bad := bytes.Clone(good)
		at := r.IntN(len(bad))
		for bad[at] == 0 && r.IntN(8) > 0 { // most of the file is empty
			at = r.IntN(len(bad))
		}
		bad[at] ^= 1 << r.IntN(8)
		if found(t, bad) {
			continue
		}
		judgedGood++
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readByEtcd(path)
		if err != nil {
			t.Fatalf("byte %d: judged good, and etcd says %v", at, err)
		}
		for place, before := range want {
			after, there := got[place]
			if !there && before.compacted {
				continue // its place in its transaction changed, which nothing tells
			}
			if before.facts != after.facts || (before.name != after.name && before.version > 1 && !before.compacted) {
				t.Errorf("byte %d: %+v of %s became %+v, and nothing is found", at, before, place, after)
			}
		}
		if len(got) != len(want) {
			t.Errorf("byte %d: %d records became %d", at, len(want), len(got))
		}
	}
	t.Logf("%d of %d changed files are judged good", judgedGood, mutations)
}

// byEtcd is a record as etcd reads it.
type byEtcd struct {
	name    string
	version int64
	facts   string

	compacted bool
}

// readByEtcd reads everything with bbolt and etcd's own messages. What crashes
// them is an error.
func readByEtcd(path string) (all map[string]byEtcd, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer db.Close()
	all = make(map[string]byEtcd)
	return all, db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(bucket []byte, b *bolt.Bucket) error {
			return b.ForEach(func(k, v []byte) error {
				place := fmt.Sprintf("%s/%x", bucket, k)
				switch {
				case string(bucket) == "meta" && string(k) == "finishedCompactRev": // a lower one: etcd compacts again
					all[place] = byEtcd{}
					return nil
				case string(bucket) != "key":
					all[place] = byEtcd{facts: string(v)}
					return nil
				}
				var kv mvccpb.KeyValue
				if err := proto.Unmarshal(v, &kv); err != nil {
					return err
				}
				facts := fmt.Sprint(kv.ModRevision, len(kv.Key), len(kv.Value))
				if kv.ModRevision > compacted {
					facts += fmt.Sprint(" ", kv.CreateRevision, kv.Version)
				}
				all[place] = byEtcd{name: string(kv.Key), version: kv.Version, facts: facts, compacted: kv.ModRevision <= compacted}
				return nil
			})
		})
	})
}
