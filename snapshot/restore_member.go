package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/config"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/etcdserver/api/snap"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
)

// firstTerm is the raft term of a cluster that begins.
const firstTerm = 1

// newMember is the member that a restore makes, as the first thing of a new
// cluster whose members are all voters.
type newMember struct {
	log      *zap.Logger
	name     string
	cluster  types.URLsMap
	mmapSize uint64
}

// newNewMember checks the description of the cluster, with the checks that
// etcd itself makes when it starts a cluster.
func newNewMember(opts RestoreOptions) (*newMember, error) {
	peers, err := types.NewURLs(opts.PeerURLs)
	if err != nil {
		return nil, err
	}
	cluster, err := types.NewURLsMap(opts.InitialCluster)
	if err != nil {
		return nil, err
	}
	cfg := config.ServerConfig{Logger: opts.Log, Name: opts.Name, PeerURLs: peers, InitialPeerURLsMap: cluster}
	if err := cfg.VerifyBootstrap(); err != nil {
		return nil, err
	}
	return &newMember{log: opts.Log, name: opts.Name, cluster: cluster, mmapSize: opts.MmapSize}, nil
}

// build makes the member out of the copied database in the target. etcd's
// packages panic where they give up; the database was checked before, so that
// this is a last resort.
func (m *newMember) build(t *stagedDir, r *Restored) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("build the member: %v", p)
		}
	}()
	cl, err := membership.NewClusterFromURLsMap(m.log, r.Token, m.cluster)
	if err != nil {
		return err
	}
	member := cl.MemberByName(m.name)
	r.MemberID, r.ClusterID = uint64(member.ID), uint64(cl.ID())

	if err := m.rewriteDatabase(t.database(), cl, r); err != nil {
		return err
	}
	return m.writeLog(t, cl, r)
}

// writeLog writes the log of a cluster that begins with these members, and the
// raft snapshot that goes with it.
func (m *newMember) writeLog(t *stagedDir, cl *membership.RaftCluster, r *Restored) (err error) {
	metadata, err := proto.Marshal(&etcdserverpb.Metadata{NodeID: &r.MemberID, ClusterID: &r.ClusterID})
	if err != nil {
		return fmt.Errorf("write the log: %w", err)
	}
	w, err := wal.Create(m.log, t.stagedWAL(), metadata)
	if err != nil {
		return fmt.Errorf("create the log: %w", err)
	}
	defer func() { err = errors.Join(err, w.Close()) }()

	entries, voters, err := joinEntries(cl)
	if err != nil {
		return err
	}
	commit, term := uint64(len(entries)), uint64(firstTerm)
	if err := w.Save(&raftpb.HardState{Term: &term, Vote: &voters[0], Commit: &commit}, entries); err != nil {
		return fmt.Errorf("write the log: %w", err)
	}
	conf := &raftpb.ConfState{Voters: voters}
	err = snap.New(m.log, t.snapDir()).SaveSnap(&raftpb.Snapshot{
		Data:     etcdserver.GetMembershipInfoInV2Format(m.log, cl),
		Metadata: &raftpb.SnapshotMetadata{Index: &commit, Term: &term, ConfState: conf},
	})
	if err == nil {
		err = private(t.snapDir())
	}
	if err != nil {
		return fmt.Errorf("write the raft snapshot: %w", err)
	}
	if err := w.SaveSnapshot(&walpb.Snapshot{Index: &commit, Term: &term, ConfState: conf}); err != nil {
		return fmt.Errorf("write the log: %w", err)
	}
	return nil
}

// private takes the files of a folder away from everybody else. etcd gives its
// raft snapshots the mode that the umask leaves.
func private(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.Chmod(filepath.Join(dir, e.Name()), 0o600))
	}
	return err
}

// joinEntries returns a log entry for each member that joins.
func joinEntries(cl *membership.RaftCluster) (entries []*raftpb.Entry, voters []uint64, err error) {
	for i, id := range cl.MemberIDs() {
		member, err := json.Marshal(cl.Member(id))
		if err != nil {
			return nil, nil, fmt.Errorf("write the log: %w", err)
		}
		node, index, term := uint64(id), uint64(i+1), uint64(firstTerm)
		change, err := proto.Marshal(&raftpb.ConfChange{Type: raftpb.ConfChangeAddNode.Enum(), NodeId: &node, Context: member})
		if err != nil {
			return nil, nil, fmt.Errorf("write the log: %w", err)
		}
		voters = append(voters, node)
		entries = append(entries, &raftpb.Entry{Type: raftpb.EntryConfChange.Enum(), Term: &term, Index: &index, Data: change})
	}
	return entries, voters, nil
}
