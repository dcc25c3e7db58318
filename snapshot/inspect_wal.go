package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// LogState is what a write-ahead log says, beside the database.
type LogState struct {
	Dir          string
	Segments     int
	MemberID     uint64
	ClusterID    uint64
	Term, Commit uint64 // of the last hard state
	First, Last  uint64 // indexes of the entries in force; Last may be a raft snapshot's
	LastTerm     uint64
	Applied      uint64 // what the database holds
	Torn         bool   // the last record is cut off, as after a power cut
	Damage       string // why reading ended before the end
	EntryBytes   int64  // of all entries together

	SnapshotIndex uint64 // the last raft snapshot that the log knows

	metadata []byte
	begins   uint64 // the database must hold everything before this index
	sequence int    // of entries and snapshots, as they stand in the files
	terms    []termRun
	cuts     []logCut
}

// termRun says from which index on entries have a term.
type termRun struct{ first, term uint64 }

// logCut says that everything from an index on that stands before it in the
// files was replaced.
type logCut struct {
	sequence int
	index    uint64
}

// Unapplied returns the number of entries that the database does not hold.
func (l *LogState) Unapplied() uint64 {
	if l.Last <= l.Applied {
		return 0
	}
	return l.Last - l.Applied
}

// BeyondCommit returns how many of them the member did not record as committed.
func (l *LogState) BeyondCommit() uint64 {
	if known := max(l.Commit, l.Applied); l.Last > known {
		return l.Last - known
	}
	return 0
}

// readLog reads all segments in a directory. Damage is a finding.
func readLog(ctx context.Context, dir string) (l *LogState, err error) {
	w, err := openWalker(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	l = &LogState{Dir: dir, Segments: len(w.files)}
	l.Torn, err = w.walk(ctx, func(rec *walpb.Record) error {
		if err := l.note(rec); err != nil {
			return w.damage(err)
		}
		return nil
	})
	var damage *LogDamage
	if errors.As(err, &damage) {
		l.Damage, err = damage.Error(), nil
	}
	if err == nil && l.Damage == "" && l.metadata == nil {
		l.Damage = fmt.Sprintf("the write-ahead log in %s does not say whose it is", dir)
	}
	if err == nil && l.Damage == "" && l.Commit > l.Last && l.Last > 0 {
		l.Damage = fmt.Sprintf("the write-ahead log in %s ends at entry %d, but records entry %d as committed: its end is missing", dir, l.Last, l.Commit)
	}
	return l, err
}

// note notes what a record says.
func (l *LogState) note(rec *walpb.Record) error {
	switch rec.GetType() {
	case wal.EntryType:
		var e raftpb.Entry
		if err := proto.Unmarshal(rec.GetData(), &e); err != nil {
			return fmt.Errorf("an entry cannot be decoded: %w", err)
		}
		l.EntryBytes += int64(len(rec.GetData()))
		return l.addEntry(e.GetIndex(), e.GetTerm())
	case wal.StateType:
		var s raftpb.HardState
		if err := proto.Unmarshal(rec.GetData(), &s); err != nil {
			return fmt.Errorf("a state cannot be decoded: %w", err)
		}
		l.Term, l.Commit = s.GetTerm(), s.GetCommit()
	case wal.MetadataType:
		return l.addMetadata(rec.GetData())
	case wal.SnapshotType:
		var s walpb.Snapshot
		if err := proto.Unmarshal(rec.GetData(), &s); err != nil {
			return fmt.Errorf("a snapshot record cannot be decoded: %w", err)
		}
		l.addSnapshot(s.GetIndex(), s.GetTerm())
	}
	return nil
}

// addMetadata takes the ids of cluster and member, which every segment repeats.
func (l *LogState) addMetadata(data []byte) error {
	var m etcdserverpb.Metadata
	if err := proto.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("the metadata cannot be decoded: %w", err)
	}
	if l.metadata != nil && string(l.metadata) != string(data) {
		return errors.New("the segments are of different members")
	}
	l.metadata = append([]byte{}, data...)
	l.MemberID, l.ClusterID = m.GetNodeID(), m.GetClusterID()
	return nil
}

// addEntry adds an entry. A later one of the same index replaces the earlier one
// and all that follow it.
func (l *LogState) addEntry(index, term uint64) error {
	l.sequence++
	switch {
	case l.Last == 0 && len(l.terms) == 0:
		l.begins = index
	case index <= l.Last:
		l.cut(index)
	case index > l.Last+1:
		return fmt.Errorf("entries %d to %d are missing", l.Last+1, index-1)
	}
	if l.First == 0 || index < l.First {
		l.First = index
	}
	if n := len(l.terms); n == 0 || l.terms[n-1].term != term {
		l.terms = append(l.terms, termRun{index, term})
	}
	l.Last, l.LastTerm = index, term
	return nil
}

// addSnapshot adds a raft snapshot. One that the log does not lead to came from
// the leader and replaces the whole log.
func (l *LogState) addSnapshot(index, term uint64) {
	l.sequence++
	if index == 0 {
		return
	}
	l.SnapshotIndex = index
	if have, ok := l.termOf(index); ok && have == term {
		return
	}
	if index <= l.Last && index < l.begins {
		return // from before the entries that are left
	}
	l.cuts = append(l.cuts, logCut{l.sequence, 0})
	l.begins, l.terms = index+1, []termRun{{index, term}}
	l.First, l.Last, l.LastTerm = 0, index, term
}

// cut drops all entries from index on.
func (l *LogState) cut(index uint64) {
	l.cuts = append(l.cuts, logCut{l.sequence, index})
	for n := len(l.terms); n > 0 && l.terms[n-1].first >= index; n = len(l.terms) {
		l.terms = l.terms[:n-1]
	}
	l.Last = index - 1
}

// termOf returns the term of an entry in force.
func (l *LogState) termOf(index uint64) (term uint64, ok bool) {
	if len(l.terms) == 0 || index < l.terms[0].first || index > l.Last {
		return 0, false
	}
	for _, r := range l.terms {
		if r.first <= index {
			term = r.term
		}
	}
	return term, true
}

// entries calls visit with every entry in force after an index, in order. It
// reads the files anew.
func (l *LogState) entries(ctx context.Context, after uint64, visit func(*raftpb.Entry) error) (err error) {
	w, err := openWalker(l.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	sequence, expect := 0, after+1
	lowest := l.lowestCuts()
	_, err = w.walk(ctx, func(rec *walpb.Record) error {
		if t := rec.GetType(); t != wal.EntryType && t != wal.SnapshotType {
			return nil
		}
		sequence++
		if rec.GetType() != wal.EntryType {
			return nil
		}
		for len(lowest) > 0 && lowest[0].sequence <= sequence {
			lowest = lowest[1:]
		}
		var e raftpb.Entry
		if err := proto.Unmarshal(rec.GetData(), &e); err != nil {
			return w.damage(err)
		}
		if e.GetIndex() <= after || len(lowest) > 0 && e.GetIndex() >= lowest[0].index {
			return nil
		}
		if e.GetIndex() != expect {
			return w.damage(fmt.Errorf("entry %d follows, want %d", e.GetIndex(), expect))
		}
		expect++
		return visit(&e)
	})
	if err == nil && expect <= l.Last {
		err = fmt.Errorf("the write-ahead log in %s holds no entry %d", l.Dir, expect)
	}
	return err
}

// lowestCuts returns the cuts, each with the lowest index of itself and all that
// come after it.
func (l *LogState) lowestCuts() []logCut {
	all := append([]logCut{}, l.cuts...)
	for i := len(all) - 2; i >= 0; i-- {
		all[i].index = min(all[i].index, all[i+1].index)
	}
	return all
}

// compareEntries orders two ends of a log as raft does.
func compareEntries(termA, indexA, termB, indexB uint64) int {
	return cmp.Or(cmp.Compare(termA, termB), cmp.Compare(indexA, indexB))
}
