package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// LogState is what a write-ahead log says, beside the database.
type LogState struct {
	Segments      int
	MemberID      uint64
	ClusterID     uint64
	Term, Commit  uint64 // of the last hard state
	First, Last   uint64 // indexes of the entries, 0 if there are none
	LastTerm      uint64
	Applied       uint64 // what the database holds
	Torn          bool   // the last record is cut off, as after a power cut
	Damage        string // why reading ended before the end
	SnapshotIndex uint64 // the last raft snapshot that the log knows
}

// Unapplied returns the number of entries that the database does not hold.
func (l *LogState) Unapplied() uint64 {
	if l.Last <= l.Applied {
		return 0
	}
	return l.Last - l.Applied
}

// String says what is missing.
func (l *LogState) String() string {
	n := l.Unapplied()
	if n == 0 {
		return "the database holds all of the write-ahead log"
	}
	committed := "none of them known to be committed"
	if l.Commit > l.Applied {
		committed = fmt.Sprintf("committed up to %d", l.Commit)
	}
	return fmt.Sprintf("the write-ahead log holds %d entries, %d to %d, that are not in the database and are not restored (%s)", n, l.Applied+1, l.Last, committed)
}

// LogState reads the write-ahead log of the file's data directory, segment by
// segment, and keeps nothing of it in memory.
func (f *File) LogState(ctx context.Context) (*LogState, error) {
	dir := filepath.Join(f.DataDir, memberDir, "wal")
	l, err := readLog(ctx, dir)
	if err != nil {
		return nil, err
	}
	state, err := f.State(ctx)
	if err != nil {
		return nil, err
	}
	l.Applied = state.ConsistentIndex
	return l, nil
}

// readLog reads all segments in a directory.
func readLog(ctx context.Context, dir string) (l *LogState, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: %w", dir, fs.ErrNotExist)
	}
	slices.Sort(names)
	l = &LogState{Segments: len(names)}
	var readers []fileutil.FileReader
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		readers = append(readers, fileutil.NewFileReader(f))
	}
	return l, l.read(ctx, wal.NewDecoder(readers...))
}

func (l *LogState) read(ctx context.Context, dec wal.Decoder) error {
	rec := &walpb.Record{}
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch err := decodeRecord(dec, rec); {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			l.Torn = true
			return nil
		case err != nil:
			l.Damage = err.Error()
			return nil
		}
		if err := l.take(dec, rec); err != nil {
			l.Damage = err.Error()
			return nil // damage is a finding
		}
	}
}

// decodeRecord turns a panic of the decoder on damaged bytes into an error.
func decodeRecord(dec wal.Decoder, rec *walpb.Record) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the log is damaged: %v", p)
		}
	}()
	return dec.Decode(rec)
}

// take notes what a record says.
func (l *LogState) take(dec wal.Decoder, rec *walpb.Record) error {
	switch rec.GetType() {
	case wal.EntryType:
		var e raftpb.Entry
		if err := proto.Unmarshal(rec.GetData(), &e); err != nil {
			return fmt.Errorf("an entry cannot be decoded: %w", err)
		}
		if l.First == 0 {
			l.First = e.GetIndex()
		}
		l.Last, l.LastTerm = e.GetIndex(), e.GetTerm() // a later entry of the same index replaces
	case wal.StateType:
		var s raftpb.HardState
		if err := proto.Unmarshal(rec.GetData(), &s); err != nil {
			return fmt.Errorf("a state cannot be decoded: %w", err)
		}
		l.Term, l.Commit = s.GetTerm(), s.GetCommit()
	case wal.MetadataType:
		var m etcdserverpb.Metadata
		if err := proto.Unmarshal(rec.GetData(), &m); err != nil {
			return fmt.Errorf("the metadata cannot be decoded: %w", err)
		}
		l.MemberID, l.ClusterID = m.GetNodeID(), m.GetClusterID()
	case wal.SnapshotType:
		var s walpb.Snapshot
		if err := proto.Unmarshal(rec.GetData(), &s); err != nil {
			return fmt.Errorf("a snapshot record cannot be decoded: %w", err)
		}
		l.SnapshotIndex = s.GetIndex()
	case wal.CrcType:
		if last := dec.LastCRC(); last != 0 && rec.GetCrc() != last {
			return errors.New("a segment does not follow the one before: the checksums differ")
		}
		dec.UpdateCRC(rec.GetCrc())
	}
	return nil
}
