package snapshot

import (
	"errors"
	"testing"

	"github.com/etcdkit/etcdkit/internal/mvccdb"
)

// Several clusters may answer behind one endpoint: one says who it is, another
// sends its snapshot.
func TestTheSnapshotOfAnotherClusterIsNoBackup(t *testing.T) {
	t.Parallel()
	m := &Manifest{MemberID: id(1), Endpoint: "lb:2379", Quorum: true, RevisionBefore: 5}
	for name, tc := range map[string]struct {
		members []uint64
		refused bool
	}{"its own": {[]uint64{2, 1}, false}, "another's": {[]uint64{2, 3}, true}, "it names none": {nil, false}} {
		state := &mvccdb.State{}
		for _, n := range tc.members {
			state.Members = append(state.Members, mvccdb.Member{ID: n})
		}
		if err := m.refuse(5, nil, state); errors.Is(err, ErrIncomplete) != tc.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}
