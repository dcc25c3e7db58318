package health

import (
	"fmt"
	"slices"

	"github.com/etcdkit/etcdkit/internal/output"
)

// Life is whether a member takes part in its cluster now, and what shows it.
type Life struct {
	Alive    bool
	Seen     bool // the member itself answered
	Evidence string
}

// Life decides, for every guard, plan and verdict, whether the member is alive.
// A voter is alive if it serves a linearizable read and knows the leader, which
// a member that is cut off from the others does not though it answers. A
// learner serves no such read: it is alive if it follows a leader and has
// applied what the cluster had committed before it was asked.
func (m Member) Life() Life {
	switch {
	case !m.Reachable && m.Error == "":
		return Life{Evidence: "it was not asked"}
	case !m.Reachable:
		return Life{Evidence: m.Error}
	case m.Status == nil && !m.identified:
		return Life{Evidence: "who answers is not known, the status was refused: " + m.Error}
	case m.Status == nil && m.Learner:
		return Life{Seen: true, Evidence: "its status was refused: " + m.Error}
	case m.Status == nil:
		return m.Reads.life("its leader confirmed them") // a read needs one
	case m.Status.LeaderID == 0:
		return Life{Seen: true, Evidence: "it answers but knows no leader"}
	case m.Learner:
		return m.Replication.life()
	case m.Status.Learner:
		return Life{Seen: true, Evidence: "it answers but calls itself a learner"}
	}
	return m.Reads.life("follows leader " + output.ID(m.Status.LeaderID))
}

func (r *Reads) life(leader string) Life {
	switch {
	case r == nil:
		return Life{Seen: true, Evidence: "no linearizable read was tried"}
	case r.Error != "" || r.Count == 0:
		return Life{Seen: true, Evidence: "it answers but serves no linearizable read: " + r.Error}
	}
	return Life{Alive: true, Seen: true, Evidence: fmt.Sprintf("served %d linearizable reads, %s", r.Count, leader)}
}

// readsServed reports whether any linearizable read succeeded, which shows that
// there is a quorum though it may not be seen from here.
func readsServed(facts Facts) bool {
	return slices.ContainsFunc(facts.Members, func(m Member) bool { return m.Listed && m.Reads != nil && m.Reads.Count > 0 })
}

// Replication is how far a learner has come.
type Replication struct {
	Committed uint64 `json:"committedIndex"` // in the cluster, before the learner was asked; 0 where that is not known
	Applied   uint64 `json:"appliedIndex"`
	Error     string `json:"error,omitempty"`
}

func (r *Replication) life() Life {
	switch {
	case r == nil:
		return Life{Seen: true, Evidence: "it was not seen to replicate"}
	case r.Error != "":
		return Life{Seen: true, Evidence: "it was not seen to replicate: " + r.Error}
	case r.Applied < r.Committed:
		return Life{Seen: true, Evidence: fmt.Sprintf("%d entries behind: it has applied %d of %d that were committed before", r.Committed-r.Applied, r.Applied, r.Committed)}
	}
	return Life{Alive: true, Seen: true, Evidence: fmt.Sprintf("has applied entry %d, committed before it was asked", r.Committed)}
}
