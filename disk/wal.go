package disk

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
)

// segments is what etcd allocates ahead: the log's segment and the next one.
func segments() int64 { return 2 * wal.SegmentSizeBytes }

// journal writes etcd's own write-ahead log.
type journal struct {
	wal   *wal.WAL
	next  func() []byte
	batch int // entries in one save
	index uint64
}

func newJournal(dir string, block, batch int) (*journal, error) {
	w, err := wal.Create(zap.NewNop(), filepath.Join(dir, "wal"), nil)
	if err != nil {
		return nil, fmt.Errorf("create a log of %d MB segments: %w", wal.SegmentSizeBytes>>20, err)
	}
	return &journal{wal: w, next: blocks(block), batch: batch}, nil
}

// save appends one batch and syncs it, as a member does for the proposals that
// came in while it synced the batch before.
func (j *journal) save() error {
	entries := make([]*raftpb.Entry, j.batch)
	for i := range entries {
		j.index++
		entries[i] = &raftpb.Entry{Term: proto.Uint64(1), Index: proto.Uint64(j.index), Data: j.next()}
	}
	return j.wal.Save(&raftpb.HardState{Term: proto.Uint64(1), Vote: proto.Uint64(1), Commit: proto.Uint64(j.index - 1)}, entries)
}

// beginWAL prepares a round of pattern wal. The log needs names, so its folder
// stays until the round ends.
func beginWAL(_ context.Context, opts Options, _ Filesystem) (round, error) {
	s, err := folders().NewIn(opts.at)
	if err != nil {
		return round{}, err
	}
	j, err := newJournal(s.Through(), opts.Block, opts.Jobs)
	if err != nil {
		return round{}, joinEnd(err, s.Remove)
	}
	return round{
		ops: []operation{func() (time.Time, error) { return time.Now(), j.save() }},
		end: func() error { return errors.Join(j.wal.Close(), s.Remove()) },
	}, nil
}
