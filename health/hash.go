package health

import (
	"context"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Hashes is the comparison of the members' data at one revision.
type Hashes struct {
	Revision int64        `json:"revision"` // 0 when nothing could be compared
	Result   HashResult   `json:"result"`
	Members  []MemberHash `json:"members"`
	// Ahead tells of members whose newest revisions differ, beyond the one that
	// was hashed.
	Ahead string `json:"ahead,omitempty"`
}

// MemberHash is the hash of a member's data up to a revision.
type MemberHash struct {
	Member          string `json:"member"`
	Endpoint        string `json:"endpoint"`
	Hash            uint32 `json:"hash"`
	Revision        int64  `json:"revision"`
	CompactRevision int64  `json:"compactRevision"`
	// NewestRevision is set where members that have applied the same entries are
	// at different revisions: it is that of this member, if it is one of them.
	NewestRevision int64  `json:"newestRevision,omitempty"`
	Error          string `json:"error,omitempty"`
}

// HashResult is what a comparison of hashes shows.
type HashResult string

// Equal and Differ need at least two members that hashed the same revision
// with the same compact revision. Single is a cluster of one voter, which has
// nothing to compare.
const (
	HashesEqual   HashResult = "equal"
	HashesDiffer  HashResult = "differ"
	HashesUnknown HashResult = "unknown"
	HashesSingle  HashResult = "single"
)

const (
	hashTries = 6
	hashPause = 200 * time.Millisecond
	// steadyPause lies between two readings that must be the same to count:
	// Status reads revision and applied index apart.
	steadyPause = 50 * time.Millisecond
	// hashTimeout bounds one hash: it reads the whole database.
	hashTimeout = 2 * time.Minute
)

// HashSource is a member whose data are compared.
type HashSource struct {
	Member, Endpoint string
	// State tells how far the member has applied, and who leads.
	State func(ctx context.Context) (HashState, error)
	// Hash is the hash of its data up to a revision.
	Hash func(ctx context.Context, revision int64) (MemberHash, error)
}

// HashState is how far a member is.
type HashState struct {
	Revision int64
	Applied  uint64
	Leads    bool
}

// CompareHashes hashes all members at one revision and compares: one member at
// a time and the leader last, for a hash blocks writes on its member. Hashes
// taken member by member at their newest revision differ under writes, and
// those with another compact revision cover other data: neither is a difference
// in the data. A disagreement is believed when it shows at two revisions, and
// agreement when it covers every revision that any member was seen to have.
func CompareHashes(ctx context.Context, members []HashSource) Hashes {
	if len(members) == 0 {
		return Hashes{Result: HashesUnknown}
	}
	var last Hashes
	var disagreed, seen int64
	for try := range hashTries {
		if try > 0 {
			select {
			case <-ctx.Done():
				return last
			case <-time.After(hashPause):
			}
		}
		before := readStates(ctx, members)
		last = hashOnce(ctx, members, before)
		switch {
		case last.Result == HashesDiffer && disagreed != 0:
			return last
		case last.Result == HashesDiffer:
			disagreed = last.Revision
			continue
		case last.Result != HashesEqual:
			continue
		}
		if last.Revision >= newestOf(before) || seen != 0 && last.Revision >= seen {
			return last
		}
		seen = newestOf(before)
		if ahead, newest := steadilyAhead(ctx, members); ahead != "" {
			last.Result, last.Ahead = HashesDiffer, ahead
			for i := range last.Members {
				last.Members[i].NewestRevision = newest[i]
			}
			return last
		}
		last.Result, last.Ahead = HashesUnknown, "the members' newest revisions differ, and no two readings were steady"
	}
	return last
}

// state is what one reading of a member brought.
type state struct {
	HashState
	err error
}

func readStates(ctx context.Context, members []HashSource) []state {
	out := make([]state, len(members))
	for i, m := range members {
		out[i].HashState, out[i].err = m.State(ctx)
	}
	return out
}

func newestOf(states []state) (revision int64) {
	for _, s := range states {
		if s.err == nil {
			revision = max(revision, s.Revision)
		}
	}
	return revision
}

// steadilyAhead compares revisions of members that have applied the same
// entries: these decide the revision. Only what two readings show counts. It
// also returns the revision of each member that has applied those entries.
func steadilyAhead(ctx context.Context, members []HashSource) (ahead string, newest []int64) {
	first := readStates(ctx, members)
	select {
	case <-ctx.Done():
		return "", nil
	case <-time.After(steadyPause):
	}
	second := readStates(ctx, members)
	steady := func(i int) bool { return first[i].err == nil && first[i] == second[i] }
	for i := range members {
		for k := range i {
			if !steady(i) || !steady(k) || first[i].Applied != first[k].Applied || first[i].Revision == first[k].Revision {
				continue
			}
			newest = make([]int64, len(members))
			for j := range members {
				if steady(j) && first[j].Applied == first[i].Applied {
					newest[j] = first[j].Revision
				}
			}
			return fmt.Sprintf("%s is at revision %d and %s at %d, though both have applied entry %d",
				members[k].Member, first[k].Revision, members[i].Member, first[i].Revision, first[i].Applied), newest
		}
	}
	return "", nil
}

// hashOnce compares at the newest revision that every member has.
func hashOnce(ctx context.Context, members []HashSource, states []state) Hashes {
	target := int64(0)
	out := make([]MemberHash, len(members))
	order := make([]int, 0, len(members))
	for i, s := range states {
		out[i] = MemberHash{Member: members[i].Member, Endpoint: members[i].Endpoint}
		if s.err != nil {
			out[i].Error = s.err.Error()
			continue
		}
		order = append(order, i)
		if target == 0 || s.Revision < target {
			target = s.Revision
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return btoi(states[a].Leads) - btoi(states[b].Leads) })
	for _, i := range order {
		h, err := members[i].Hash(ctx, target)
		h.Member, h.Endpoint, h.Revision = members[i].Member, members[i].Endpoint, target
		if err != nil {
			h.Error = err.Error()
		}
		out[i] = h
	}
	return judgeHashes(target, out)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// judgeHashes compares the members that share a compact revision.
func judgeHashes(revision int64, hashes []MemberHash) Hashes {
	out := Hashes{Revision: revision, Result: HashesUnknown, Members: hashes}
	first := map[int64]uint32{}
	compared := 0
	for _, h := range hashes {
		if h.Error != "" {
			continue
		}
		known, ok := first[h.CompactRevision]
		if !ok {
			first[h.CompactRevision] = h.Hash
			continue
		}
		compared++
		if known != h.Hash {
			out.Result = HashesDiffer
		}
	}
	if out.Result == HashesUnknown && compared > 0 && len(first) == 1 {
		out.Result = HashesEqual
	}
	return out
}

func compareHashes(ctx context.Context, probes []*probe, voters int) (*Hashes, []Gap) {
	var sources []HashSource
	var gaps []Gap
	for _, p := range probes {
		// A learner refuses to hash; it is no voter whose answer counts.
		if p.client != nil && p.Reachable && !p.Learner {
			sources = append(sources, p.hashSource())
		}
	}
	h := CompareHashes(ctx, sources)
	for _, m := range h.Members {
		if m.Error != "" {
			gaps = append(gaps, Gap{Member: m.Member, Check: KindHash, Reason: m.Error})
		}
	}
	switch {
	case h.Result != HashesUnknown:
	case voters == 1 && len(gaps) == 0:
		h.Result = HashesSingle
	case h.Ahead != "":
		gaps = append(gaps, Gap{Check: KindHash, Reason: h.Ahead})
	default:
		gaps = append(gaps, Gap{Check: KindHash, Reason: fmt.Sprintf(
			"no two of %d members hashed one revision with one compact revision", len(sources))})
	}
	return &h, gaps
}

func (p *probe) hashSource() HashSource {
	return HashSource{
		Member: p.Label(), Endpoint: p.Endpoint,
		State: func(ctx context.Context) (HashState, error) {
			resp, err := within(ctx, func(ctx context.Context) (*clientv3.StatusResponse, error) { return p.client.Status(ctx, p.Endpoint) })
			return HashStateOf(resp), err
		},
		Hash: func(ctx context.Context, revision int64) (MemberHash, error) {
			ctx, cancel := context.WithTimeout(ctx, hashTimeout)
			defer cancel()
			resp, err := p.client.HashKV(ctx, p.Endpoint, revision)
			if err != nil {
				return MemberHash{}, err
			}
			return MemberHash{Hash: resp.Hash, CompactRevision: resp.CompactRevision}, nil
		},
	}
}

// HashStateOf is how far a member is by its status.
func HashStateOf(r *clientv3.StatusResponse) HashState {
	if r == nil {
		return HashState{}
	}
	return HashState{Revision: r.Header.GetRevision(), Applied: r.RaftAppliedIndex, Leads: r.Leader != 0 && r.Leader == r.Header.GetMemberId()}
}
