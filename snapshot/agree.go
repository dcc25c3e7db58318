package snapshot

import (
	"fmt"

	"github.com/etcdkit/etcdkit/internal/mvccdb"
)

// Agrees fails if a snapshot is not what its manifest says of the content: of
// another cluster, at another revision, with other keys. Bytes that hash to what
// the manifest says prove nothing where both came from the same stranger.
func (m *Manifest) Agrees(found *mvccdb.Report) error {
	if wrong := m.contradicts(found); wrong != "" {
		return fmt.Errorf("%w: %s", ErrIncomplete, wrong)
	}
	return nil
}

// contradicts says where the file and the manifest differ, "" if nowhere.
func (m *Manifest) contradicts(found *mvccdb.Report) string {
	if m == nil {
		return ""
	}
	switch {
	case found.Revision < m.earliest() || found.Revision > m.latest():
		return fmt.Sprintf("the file is at revision %d, the manifest says from %d to %d", found.Revision, m.earliest(), m.latest())
	case m.Keys != nil && *m.Keys != int64(found.LiveKeys):
		return fmt.Sprintf("the file has %d keys, the manifest says %d", found.LiveKeys, *m.Keys)
	case m.HashKV != nil && m.HashRevision == found.Revision && *m.HashKV != found.HashKV.Hash:
		return fmt.Sprintf("the file's hash is %d, the manifest says %d", found.HashKV.Hash, *m.HashKV)
	}
	return m.foreign(&found.State)
}

// foreign says whether a snapshot is of another cluster: the member that it was
// taken from is not among the members in it. "" means no, or that the snapshot
// names none.
func (m *Manifest) foreign(state *mvccdb.State) string {
	for _, member := range state.Members {
		if id(member.ID) == m.MemberID {
			return ""
		}
	}
	if len(state.Members) == 0 {
		return ""
	}
	return fmt.Sprintf("the manifest says that it is of member %s, which is not among the %d members in it", m.MemberID, len(state.Members))
}
