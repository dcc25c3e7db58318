package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"math"
	"time"

	"github.com/coreos/go-semver/semver"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/pkg/v3/traceutil"
	"go.etcd.io/etcd/pkg/v3/wait"
	"go.etcd.io/etcd/server/v3/auth"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3alarm"
	"go.etcd.io/etcd/server/v3/etcdserver/apply"
	"go.etcd.io/etcd/server/v3/etcdserver/cindex"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"golang.org/x/crypto/bcrypt"
	"google.golang.org/protobuf/proto"

	"github.com/etcdkit/etcdkit/internal/embedded"
)

// What of etcd's configuration applying a log needs.
const (
	unlimitedQuota = -1 // the quota refuses no entry, it only raises an alarm
	leastLeaseTTL  = 2  // seconds; etcd's with its default election timeout
	seldom         = time.Hour
	compactBatch   = 10_000
)

// Replayed is what a restore took from the write-ahead log.
type Replayed struct {
	Entries      uint64 // that the database did not hold
	From, To     uint64 // their indexes
	BeyondCommit uint64 // how many of them were not recorded as committed
	Memberships  int    // how many of them changed the membership, which a restore replaces
	Torn         bool   // the last record of the log was cut off

	digest [sha256.Size]byte
}

// unapplied describes the entries that the database does not hold.
func (l *LogState) unapplied(ctx context.Context) (*Replayed, error) {
	r := &Replayed{Entries: l.Unapplied(), BeyondCommit: l.BeyondCommit(), Torn: l.Torn}
	if r.Entries == 0 {
		return r, nil
	}
	r.From, r.To = l.Applied+1, l.Last
	sum := sha256.New()
	if err := l.entries(ctx, l.Applied, func(e *raftpb.Entry) error { hashEntry(sum, e); return nil }); err != nil {
		return nil, err
	}
	sum.Sum(r.digest[:0])
	return r, nil
}

// replay applies the entries that the database at path does not hold. It is done
// by etcd's own code, so that an entry has the effect, or is refused, as in a
// member. What else changes a member's data does not run: leases do not expire,
// and no version moves on unless an entry says so.
func (l *LogState) replay(ctx context.Context, path string, log *zap.Logger) (*Replayed, error) {
	r, err := l.unapplied(ctx)
	if err != nil || r.Entries == 0 {
		return r, err
	}
	failed := embedded.NewFailure()
	log = log.WithOptions(zap.WithFatalHook(failed), zap.WithPanicHook(failed))
	r.Memberships, err = embedded.Guard(failed, func() (int, error) { return l.applyTo(ctx, path, log) }, func(int) {})
	if err != nil {
		return nil, fmt.Errorf("apply the write-ahead log: %w", err)
	}
	return r, nil
}

// applyTo does the work of replay. It returns how many entries changed the
// membership.
func (l *LogState) applyTo(ctx context.Context, path string, log *zap.Logger) (memberships int, err error) {
	at := l.Applied
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("entry %d: %v", at, p)
		}
	}()
	a, err := newApplier(path, l, log)
	if err != nil {
		return 0, err
	}
	err = l.entries(ctx, l.Applied, func(e *raftpb.Entry) error {
		at = e.GetIndex()
		return a.apply(e)
	})
	if err == nil {
		err = a.finishCompaction(ctx)
	}
	if err == nil {
		cindex.UpdateConsistentIndexForce(a.be.BatchTx(), l.Last, l.LastTerm)
	}
	return a.memberships, errors.Join(err, a.close())
}

// hashEntry adds an entry to what tells two logs apart.
func hashEntry(sum hash.Hash, e *raftpb.Entry) {
	var head [28]byte
	binary.BigEndian.PutUint64(head[0:], e.GetIndex())
	binary.BigEndian.PutUint64(head[8:], e.GetTerm())
	binary.BigEndian.PutUint32(head[16:], uint32(e.GetType()))
	binary.BigEndian.PutUint64(head[20:], uint64(len(e.GetData())))
	sum.Write(head[:])
	sum.Write(e.GetData())
}

// applier is what of an etcd server applies entries.
type applier struct {
	log         *zap.Logger
	be          backend.Backend
	lessor      lease.Lessor
	kv          mvcc.WatchableKV
	auth        auth.AuthStore
	cluster     *membership.RaftCluster
	uber        apply.UberApplier
	waiting     wait.Wait
	memberships int
}

// newApplier opens a database as an etcd server does when it starts.
func newApplier(path string, l *LogState, log *zap.Logger) (*applier, error) {
	cfg := backend.DefaultBackendConfig(log)
	// Synced with what the restore writes last. Commits happen where the work
	// is done, so that a failing one is found there.
	cfg.Path, cfg.UnsafeNoFsync, cfg.BatchInterval = path, true, seldom
	a := &applier{log: log, be: backend.New(cfg), waiting: wait.New()}
	a.cluster = membership.NewCluster(log)
	a.cluster.SetID(types.ID(l.MemberID), types.ID(l.ClusterID))
	a.cluster.SetBackend(schema.NewMembershipBackend(log, a.be))
	a.cluster.Recover(ignoreVersion)
	// The lessor comes before the keys, which attach themselves to its leases.
	// Nobody promotes it, so that no lease expires.
	a.lessor = lease.NewLessor(log, a.be, a.cluster, lease.LessorConfig{MinLeaseTTL: leastLeaseTTL})
	a.kv = mvcc.New(log, a.be, a.lessor, mvcc.StoreConfig{CompactionBatchLimit: compactBatch, CompactionSleepInterval: time.Microsecond})
	tokens, err := auth.NewTokenProvider(log, "", nil, 0)
	if err != nil {
		return nil, err
	}
	a.auth = auth.NewAuthStore(log, schema.NewAuthBackend(log, a.be), tokens, bcrypt.DefaultCost)
	alarms, err := v3alarm.NewAlarmStore(log, schema.NewAlarmBackend(log, a.be))
	if err != nil {
		return nil, err
	}
	a.uber = apply.NewUberApplier(apply.ApplierOptions{
		Logger: log, KV: a.kv, AlarmStore: alarms, AuthStore: a.auth, Lessor: a.lessor, Cluster: a.cluster,
		RaftStatus: raftOf{l}, SnapshotServer: noSnapshots{}, ConsistentIndex: cindex.NewFakeConsistentIndex(l.Applied),
		TxnModeWriteWithSharedBuffer: true, Backend: a.be, QuotaBackendBytesCfg: unlimitedQuota, WarningApplyDuration: math.MaxInt64,
	})
	return a, nil
}

// apply applies one entry, as etcd's applyEntryNormal does.
func (a *applier) apply(e *raftpb.Entry) error {
	switch e.GetType() {
	case raftpb.EntryNormal:
	case raftpb.EntryConfChange, raftpb.EntryConfChangeV2:
		a.memberships++
		return nil
	default:
		return fmt.Errorf("entry %d is of the unknown type %s", e.GetIndex(), e.GetType())
	}
	if len(e.GetData()) == 0 {
		return nil // a leader begins its term with one
	}
	var request pb.InternalRaftRequest
	if err := proto.Unmarshal(e.GetData(), &request); err != nil {
		return a.applyV2(e)
	}
	if request.ClusterMemberAttrSet != nil {
		a.memberships++
		return nil
	}
	apply.Apply(a.log, e, a.uber, a.waiting, membership.ApplyBoth)
	return nil
}

// applyV2 applies a request of etcd's second API. Its keys are not in the
// database, but the version of the cluster is.
func (a *applier) applyV2(e *raftpb.Entry) error {
	r, err := decodeV2(e)
	if err != nil {
		return err
	}
	v, err := r.clusterVersion()
	if err != nil {
		return err
	}
	if v != nil {
		a.cluster.SetVersion(v, ignoreVersion, membership.ApplyBoth)
	} else {
		a.memberships++
	}
	return nil
}

// finishCompaction waits until the last compaction is done that an entry asked
// for, or that the member had begun.
func (a *applier) finishCompaction(ctx context.Context) error {
	done, err := a.kv.Compact(traceutil.TODO(), mvccNever)
	if !errors.Is(err, mvcc.ErrCompacted) {
		return fmt.Errorf("wait for the compaction: %w", err)
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// mvccNever is a revision before every compaction: asking for one there does
// nothing but wait for those before it.
const mvccNever = -1

// close writes everything and closes the database.
func (a *applier) close() error {
	err := a.kv.Close()
	err = errors.Join(err, a.auth.Close())
	a.lessor.Stop()
	a.be.ForceCommit()
	return errors.Join(err, a.be.Close())
}

func ignoreVersion(*zap.Logger, *semver.Version) {}

// raftOf answers what requests are told of raft.
type raftOf struct{ log *LogState }

func (r raftOf) MemberID() types.ID     { return types.ID(r.log.MemberID) }
func (r raftOf) Leader() types.ID       { return types.ID(r.log.MemberID) }
func (r raftOf) CommittedIndex() uint64 { return r.log.Last }
func (r raftOf) AppliedIndex() uint64   { return r.log.Last }
func (r raftOf) Term() uint64           { return r.log.LastTerm }

// noSnapshots takes the wish for a raft snapshot, which the restore writes.
type noSnapshots struct{}

func (noSnapshots) ForceSnapshot() {}
