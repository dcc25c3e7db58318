package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"
)

// rewriteDatabase gives the database its new members, revision and place in
// the log, in two transactions: the second uses the pages that the first has
// freed, so that the file seldom grows. It does without etcd's backend, which
// maps the whole file into memory when it opens it.
func (m *newMember) rewriteDatabase(path string, cl *membership.RaftCluster, r *Restored) error {
	const lockWait = 10 * time.Second
	db, err := bolt.Open(path, 0o600, &bolt.Options{
		NoFreelistSync: true, FreelistType: bolt.FreelistArrayType, InitialMmapSize: int(m.mmapSize), Timeout: lockWait,
	})
	if err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	err = db.Update(func(tx *bolt.Tx) error { return m.replaceMembers(tx, cl) })
	if err == nil {
		err = db.Update(func(tx *bolt.Tx) error { return moveOn(tx, r, uint64(len(cl.MemberIDs()))) })
	}
	return errors.Join(err, db.Close())
}

// moveOn writes the new revision and the place in the log.
func moveOn(tx *bolt.Tx, r *Restored, commit uint64) error {
	w := &boltWriter{tx: tx}
	if r.BumpedBy > 0 {
		key := mvcc.RevToBytes(mvcc.Revision{Main: r.Revision}, mvcc.NewRevBytes())
		w.UnsafePut(schema.Key, key, []byte{})
	}
	if r.Compacted {
		mvcc.UnsafeSetScheduledCompact(w, r.Revision)
	}
	schema.UnsafeUpdateConsistentIndexForce(w, commit, firstTerm)
	if w.err != nil {
		return fmt.Errorf("write the revision: %w", w.err)
	}
	return nil
}

// replaceMembers removes the old members and writes the new ones.
func (m *newMember) replaceMembers(tx *bolt.Tx, cl *membership.RaftCluster) error {
	err := clearBucket(tx, schema.Members)
	err = errors.Join(err, clearBucket(tx, schema.MembersRemoved))
	if err == nil {
		_, err = tx.CreateBucketIfNotExists(schema.Cluster.Name())
	}
	w := &boltWriter{tx: tx, err: err}
	for _, member := range cl.Members() {
		value, err := json.Marshal(member)
		if err != nil {
			return fmt.Errorf("write member %s: %w", member.ID, err)
		}
		w.UnsafePut(schema.Members, schema.BackendMemberKey(member.ID), value)
		m.log.Info("added member", zap.Stringer("cluster-id", cl.ID()), zap.Stringer("added-peer-id", member.ID),
			zap.Strings("added-peer-peer-urls", member.PeerURLs))
	}
	if w.err != nil {
		return fmt.Errorf("replace the members: %w", w.err)
	}
	return nil
}

// clearBucket leaves an empty bucket.
func clearBucket(tx *bolt.Tx, b backend.Bucket) error {
	bucket, err := tx.CreateBucketIfNotExists(b.Name())
	if err != nil {
		return err
	}
	cursor := bucket.Cursor()
	for key, _ := cursor.First(); key != nil; key, _ = cursor.First() {
		if err := cursor.Delete(); err != nil {
			return err
		}
	}
	return nil
}

// boltWriter is a transaction as etcd's own functions want it. It keeps the
// first error, which they do not return.
type boltWriter struct {
	backend.UnsafeReadWriter // for what they never call
	tx                       *bolt.Tx
	err                      error
}

// UnsafePut puts a value.
func (w *boltWriter) UnsafePut(bucket backend.Bucket, key, value []byte) {
	b, err := w.tx.CreateBucketIfNotExists(bucket.Name())
	if err == nil {
		err = b.Put(key, value)
	}
	if w.err == nil {
		w.err = err
	}
}
