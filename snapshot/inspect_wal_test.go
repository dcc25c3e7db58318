package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/etcdkit/etcdkit/internal/mvccdb"
)

// Each word of a log is a record: 5.2 is entry 5 of term 2, s7.2 a raft snapshot
// up to there, c6 a state that records entry 6 as committed.
func TestALogInForceIsWhatRaftKeeps(t *testing.T) {
	for name, tc := range map[string]struct {
		log     string
		applied uint64 // what the database holds
		term    uint64 // of that
		want    string // entries in force after it, or a part of the error
	}{
		"one after the other":                       {"1.1 2.1 3.2", 0, 0, "1.1 2.1 3.2"},
		"what the database does not hold":           {"1.1 2.1 3.2", 2, 1, "3.2"},
		"all is in the database":                    {"1.1 2.1", 2, 1, ""},
		"a new leader replaces the end":             {"1.1 2.1 3.1 4.1 3.2 4.2", 2, 1, "3.2 4.2"},
		"it replaces more than it brings":           {"1.1 2.1 3.1 4.1 2.2", 1, 1, "2.2"},
		"twice":                                     {"1.1 2.1 3.1 3.2 4.2 2.3 3.3", 1, 1, "2.3 3.3"},
		"with a snapshot of its own":                {"1.1 2.1 s2.1 3.1", 2, 1, "3.1"},
		"after a leader's snapshot":                 {"1.1 2.1 s7.2 8.2 9.2", 7, 2, "8.2 9.2"},
		"a leader's snapshot replaces other terms":  {"1.1 2.1 3.1 4.1 s3.2 4.2", 3, 2, "4.2"},
		"it leaves nothing of the old end":          {"1.1 2.1 3.1 4.1 s3.2", 3, 2, ""},
		"a snapshot that is not in the database":    {"1.1 2.1 s7.2 8.2", 2, 1, "begins at entry 8"},
		"a log that begins later than the database": {"5.1 6.1", 2, 1, "begins at entry 5"},
		"a log that ends before the database":       {"1.1 2.1", 3, 1, "ends at entry 2"},
		"another member's, by its term":             {"1.1 2.2 3.2", 2, 1, "has term 2"},
		"a hole":                                    {"1.1 2.1 4.1", 1, 1, "entries 3 to 3 are missing"},
		"without the end that was committed":        {"1.1 2.1 c4", 1, 1, "its end is missing"},
		"committed beyond what counts":              {"1.1 2.1 c2 3.1", 1, 1, "2.1 3.1"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := readLog(t.Context(), writeLog(t, tc.log))
			if err != nil {
				t.Fatal(err)
			}
			d := &DataDir{File: &File{}, Log: l}
			d.State = stateAt(tc.applied, tc.term)
			l.Applied = tc.applied
			var got []string
			err = d.checkLog()
			if err == nil {
				err = l.entries(t.Context(), tc.applied, func(e *raftpb.Entry) error {
					got = append(got, fmt.Sprintf("%d.%d", e.GetIndex(), e.GetTerm()))
					return nil
				})
			}
			if err != nil {
				if tc.want == "" || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%v, want %q", err, tc.want)
				}
				return
			}
			if strings.Join(got, " ") != tc.want || l.Unapplied() != uint64(len(got)) {
				t.Errorf("%q (%d), want %q", got, l.Unapplied(), tc.want)
			}
		})
	}
}

// writeLog writes a log with etcd's own package, without its trailing zeros.
func writeLog(t *testing.T, records string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "wal")
	metadata, err := proto.Marshal(&etcdserverpb.Metadata{NodeID: proto.Uint64(1), ClusterID: proto.Uint64(2)})
	if err != nil {
		t.Fatal(err)
	}
	w, err := wal.Create(zap.NewNop(), dir, metadata)
	if err != nil {
		t.Fatal(err)
	}
	commit := uint64(1)
	for word := range strings.FieldsSeq(records) {
		var index, term uint64
		switch word[0] {
		case 'c':
			_, _ = fmt.Sscanf(word, "c%d", &commit)
			err = w.Save(&raftpb.HardState{Term: proto.Uint64(1), Vote: proto.Uint64(1), Commit: &commit}, nil)
		case 's':
			_, _ = fmt.Sscanf(word, "s%d.%d", &index, &term)
			err = w.SaveSnapshot(&walpb.Snapshot{Index: &index, Term: &term, ConfState: &raftpb.ConfState{Voters: []uint64{1}}})
		default:
			_, _ = fmt.Sscanf(word, "%d.%d", &index, &term)
			err = w.Save(&raftpb.HardState{Term: &term, Vote: proto.Uint64(1), Commit: &commit},
				[]*raftpb.Entry{{Type: raftpb.EntryNormal.Enum(), Index: &index, Term: &term}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Membership changes are passed over, the joint ones of raft's second form too.
func TestMembershipChangesOfALogAreDropped(t *testing.T) {
	a := &applier{}
	for _, kind := range []raftpb.EntryType{raftpb.EntryConfChange, raftpb.EntryConfChangeV2} {
		if err := a.apply(&raftpb.Entry{Type: kind.Enum(), Index: proto.Uint64(1), Data: []byte{1}}); err != nil {
			t.Error(err)
		}
	}
	if a.memberships != 2 {
		t.Errorf("%d changes of the membership, want 2", a.memberships)
	}
	if err := a.apply(&raftpb.Entry{Type: raftpb.EntryType(9).Enum(), Index: proto.Uint64(1)}); err == nil {
		t.Error("an entry of an unknown type was accepted")
	}
}

// Whatever stands where a log should be costs an error, never a crash.
func FuzzALog(f *testing.F) {
	f.Add([]byte{4, 0, 0, 0, 0, 0, 0, 0x84, 8, 4, 0x10, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		writeSegment(t, dir, b)
		l, err := readLog(context.Background(), dir)
		if err != nil || l.Damage != "" {
			return
		}
		_ = l.entries(context.Background(), 0, func(e *raftpb.Entry) error {
			_, err := clusterVersionOf(e)
			return err
		})
	})
}

// The newest good backup may only be one that --any-quorum takes.
func TestABackupWithoutQuorumIsNamed(t *testing.T) {
	old := &Backup{Manifest: Manifest{Name: "20260101T000000Z-0000000000000001-00000001"}}
	_, err := Find([]*Backup{old}, "latest", false)
	if !errors.Is(err, ErrNoBackup) || !strings.Contains(err.Error(), old.Name) {
		t.Errorf("%v, want the name of the backup without quorum", err)
	}
	if got, err := Find([]*Backup{old}, "latest", true); err != nil || !slices.Contains([]*Backup{got}, old) {
		t.Errorf("%v, %v", got, err)
	}
}

func stateAt(index, term uint64) *mvccdb.State {
	return &mvccdb.State{ConsistentIndex: index, Term: term}
}

func writeSegment(t *testing.T, dir string, b []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "0000000000000000-0000000000000000.wal"), b, 0o600); err != nil {
		t.Fatal(err)
	}
}
