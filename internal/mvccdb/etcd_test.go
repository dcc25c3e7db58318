package mvccdb_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/version"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/pkg/v3/traceutil"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"

	"github.com/etcdkit/etcdkit/internal/mvccdb"
)

// store is etcd's own keyspace on a database file.
type store struct {
	backend.Backend
	kv
	path string
}

// kv is the part of etcd's keyspace that the tests use.
type kv interface {
	mvcc.KV
	HashStorage() mvcc.HashStorage
}

func openStore(t *testing.T, path string) *store {
	t.Helper()
	cfg := backend.DefaultBackendConfig(zap.NewNop())
	cfg.Path, cfg.UnsafeNoFsync = path, true
	be := backend.New(cfg)
	tx := be.BatchTx()
	tx.LockOutsideApply()
	for _, b := range schema.AllBuckets {
		tx.UnsafeCreateBucket(b)
	}
	schema.UnsafeSetStorageVersion(tx, &version.V3_7)
	tx.Unlock()
	s := &store{Backend: be, kv: mvcc.NewStore(zap.NewNop(), be, &lease.FakeLessor{}, mvcc.StoreConfig{}), path: path}
	return s
}

func (s *store) close() {
	s.kv.Commit()
	s.kv.Close()
	s.Backend.ForceCommit()
	s.Backend.Close()
}

// churn makes a random history of n transactions, some of several changes, and
// compacts at the given revisions.
func (s *store) churn(t *testing.T, r *rand.Rand, n, maxValue int, compactAt ...int64) {
	t.Helper()
	for range n {
		txn := s.Write(traceutil.TODO())
		for range 1 + r.IntN(3) {
			key := fmt.Appendf(nil, "/registry/pods/p-%d", r.IntN(60))
			if r.IntN(4) == 0 {
				txn.DeleteRange(key, nil)
				continue
			}
			txn.Put(key, bytes.Repeat([]byte{'v'}, r.IntN(maxValue)), lease.LeaseID(r.IntN(2)))
		}
		txn.End()
		for _, at := range compactAt {
			if s.Rev() == at {
				done, err := s.Compact(traceutil.TODO(), at-int64(r.IntN(5)))
				if err != nil {
					t.Fatal(err)
				}
				<-done
			}
		}
	}
}

// open opens a file and fails the test where something is wrong with it.
func open(t *testing.T, path string) *mvccdb.DB {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	db, err := mvccdb.Open(f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func check(t *testing.T, path string) *mvccdb.Report {
	t.Helper()
	r, err := open(t, path).Check(t.Context(), mvccdb.CheckOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestHashesAndCountsAreEtcdsOwn(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		transactions, maxValue int
		compact                []int64
		then                   func(*store)
	}{
		"nothing was ever written": {},
		"never compacted":          {transactions: 200, maxValue: 100},
		"compacted twice":          {transactions: 400, maxValue: 100, compact: []int64{90, 200}},
		"values of many pages":     {transactions: 100, maxValue: 30000, compact: []int64{50}},
		"a compaction not finished": {
			transactions: 300, maxValue: 100, compact: []int64{90},
			then: func(s *store) { schedule(s, 200) },
		},
		"restored with a bumped revision": {
			transactions: 300, maxValue: 100, compact: []int64{90},
			then: func(s *store) {
				rev := s.Rev() + 1000000
				tx := s.BatchTx()
				tx.LockOutsideApply()
				tx.UnsafePut(schema.Key, mvcc.RevToBytes(mvcc.Revision{Main: rev}, mvcc.NewRevBytes()), []byte{})
				tx.Unlock()
				schedule(s, rev)
			},
		},
		"everything deleted": {
			transactions: 100, maxValue: 100, compact: []int64{90},
			then: func(s *store) { s.DeleteRange([]byte{0}, []byte{0xff}) },
		},
		"everything deleted and compacted": {
			transactions: 100, maxValue: 100,
			then: func(s *store) {
				s.DeleteRange([]byte{0}, []byte{0xff})
				done, _ := s.Compact(traceutil.TODO(), s.Rev())
				<-done
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3) {
				s := openStore(t, filepath.Join(t.TempDir(), "db"))
				s.churn(t, rand.New(rand.NewPCG(seed, 0)), tc.transactions, tc.maxValue, tc.compact...)
				if tc.then != nil {
					tc.then(s)
				}
				s.close()
				compare(t, s.path)
			}
		})
	}
}

func schedule(s *store, rev int64) {
	tx := s.BatchTx()
	tx.LockOutsideApply()
	defer tx.Unlock()
	mvcc.UnsafeSetScheduledCompact(tx, rev)
}

// compare compares everything with what etcd says about the same file. etcd
// changes the file that it hashes, so it gets a copy.
func compare(t *testing.T, path string) {
	t.Helper()
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	db, got := open(t, path), check(t, path)
	if !got.Good() {
		t.Fatalf("damage in a good file: %v", got.Damage)
	}
	status, err := snapshot.NewV3(zap.NewNop()).Status(path)
	if err != nil {
		t.Fatal(err)
	}
	ours := snapshot.Status{Hash: got.Hash, Revision: got.Last.Main, TotalKey: got.LiveRecords, TotalSize: got.Size, Version: "3.7.0"}
	if ours != status {
		t.Errorf("status %+v, etcd's is %+v", ours, status)
	}
	after, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file changed: %v", err)
	}

	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.WriteFile(copied, before, 0o600); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, copied)
	defer s.close()
	want, current, err := s.HashStorage().HashByRev(0)
	if err != nil {
		t.Fatal(err)
	}
	if got.Revision != current {
		t.Errorf("revision %d, etcd's is %d", got.Revision, current)
	}
	if h := etcdHash(got.HashKV); h != want {
		t.Errorf("hash %+v of everything, etcd's is %+v", h, want)
	}
	live, err := s.Range(context.Background(), []byte{0}, []byte{0xff}, mvcc.RangeOptions{})
	if err != nil || got.LiveKeys != live.Count {
		t.Errorf("%d live keys, etcd counts %d, %v", got.LiveKeys, live.Count, err)
	}
	for rev := max(1, want.CompactRevision); rev <= min(current, want.CompactRevision+40); rev++ {
		want, _, err := s.HashStorage().HashByRev(rev)
		if err != nil {
			t.Fatal(err)
		}
		if h, err := db.HashKV(t.Context(), rev, mvccdb.Options{}); err != nil || etcdHash(h) != want {
			t.Fatalf("hash %+v, %v at revision %d, etcd's is %+v", h, err, rev, want)
		}
	}
}

func etcdHash(h mvccdb.HashKV) mvcc.KeyValueHash {
	return mvcc.KeyValueHash{Hash: h.Hash, Revision: h.Revision, CompactRevision: h.CompactRevision}
}

// The strictness of the page checks rests on how bbolt lays out and cleans
// pages, so it is tried on trees that were changed in every way.
func TestGoodDatabasesOfEveryShapeAreGood(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		path := filepath.Join(t.TempDir(), "db")
		r := rand.New(rand.NewPCG(seed, 1))
		pageSize := 1024 << (seed % 4)
		bdb, err := bolt.Open(path, 0o600, &bolt.Options{NoSync: true, NoFreelistSync: seed%2 == 0, PageSize: pageSize})
		if err != nil {
			t.Fatal(err)
		}
		for round := range 60 {
			err := bdb.Update(func(tx *bolt.Tx) error { return shuffle(tx, r, round) })
			if err != nil {
				t.Fatal(err)
			}
		}
		elements := 0
		err = bdb.View(func(tx *bolt.Tx) error {
			return tx.ForEach(func(_ []byte, b *bolt.Bucket) error {
				elements += b.Stats().KeyN
				return nil
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := bdb.Close(); err != nil {
			t.Fatal(err)
		}
		got := 0
		err = mvccdb.Scan(t.Context(), open(t, path), mvccdb.Options{},
			func(b *mvccdb.Batch) (int, error) { return len(b.Elements), nil },
			func(n int) error { got += n; return nil })
		if err != nil || got != elements {
			t.Errorf("pages of %d bytes, seed %d: %d elements, %v; want %d", pageSize, seed, got, err, elements)
		}
	}
}

// shuffle changes three buckets at random: more puts at first, more deletes
// later, with keys at both ends and in the middle.
func shuffle(tx *bolt.Tx, r *rand.Rand, round int) error {
	for _, name := range []string{"small", "middle", "large"} {
		b, err := tx.CreateBucketIfNotExists([]byte(name))
		if err != nil {
			return err
		}
		changes := map[string]int{"small": 2, "middle": 100, "large": 600}[name]
		for range r.IntN(changes) {
			key := fmt.Appendf(nil, "%0*d", 1+r.IntN(40), r.IntN(4000))
			if r.IntN(60) < round {
				err = b.Delete(key)
			} else {
				err = b.Put(key, bytes.Repeat([]byte{'x'}, r.IntN(1+r.IntN(3000))))
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
