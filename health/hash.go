package health

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Hashes is the comparison of the members' data at one revision.
type Hashes struct {
	Revision int64        `json:"revision"` // 0 when nothing could be compared
	Result   HashResult   `json:"result"`
	Members  []MemberHash `json:"members"`
}

// MemberHash is the hash of a member's data up to a revision.
type MemberHash struct {
	Member          string `json:"member"`
	Endpoint        string `json:"endpoint"`
	Hash            uint32 `json:"hash"`
	Revision        int64  `json:"revision"`
	CompactRevision int64  `json:"compactRevision"`
	Error           string `json:"error,omitempty"`
}

// HashResult is what a comparison of hashes shows.
type HashResult string

// Equal and Differ need at least two members that hashed the same revision
// with the same compact revision.
const (
	HashesEqual   HashResult = "equal"
	HashesDiffer  HashResult = "differ"
	HashesUnknown HashResult = "unknown"
)

const (
	hashTries = 5
	hashPause = 200 * time.Millisecond
	// hashTimeout bounds one hash: it reads the whole database.
	hashTimeout = 2 * time.Minute
)

// A Hasher asks one member for the hash of its data at a revision, where 0
// means its newest.
type Hasher func(ctx context.Context, revision int64) (MemberHash, error)

// CompareHashes hashes all members at one revision and compares. Hashes taken
// member by member at their newest revision differ under writes, and those
// with another compact revision cover other data: neither is a difference in
// the data. A disagreement is believed when it shows at two revisions.
func CompareHashes(ctx context.Context, members []Hasher) Hashes {
	var last Hashes
	disagreed := int64(0)
	for try := range hashTries {
		if try > 0 {
			select {
			case <-ctx.Done():
				return last
			case <-time.After(hashPause):
			}
		}
		last = hashOnce(ctx, members)
		switch {
		case last.Result == HashesEqual:
			return last
		case last.Result == HashesDiffer && disagreed != 0:
			return last
		case last.Result == HashesDiffer:
			disagreed = last.Revision
		}
	}
	return last
}

// hashOnce compares at the newest revision that every member has.
func hashOnce(ctx context.Context, members []Hasher) Hashes {
	newest := hashAll(ctx, members, 0)
	target := int64(0)
	for _, h := range newest {
		if h.Error == "" && (target == 0 || h.Revision < target) {
			target = h.Revision
		}
	}
	if target == 0 {
		return Hashes{Result: HashesUnknown, Members: newest}
	}
	return judgeHashes(target, hashAll(ctx, members, target))
}

func hashAll(ctx context.Context, members []Hasher, revision int64) []MemberHash {
	out := make([]MemberHash, len(members))
	var wg sync.WaitGroup
	for i, hash := range members {
		wg.Go(func() {
			h, err := hash(ctx, revision)
			if err != nil {
				h.Error = err.Error()
			} else if revision != 0 {
				h.Revision = revision
			}
			out[i] = h
		})
	}
	wg.Wait()
	return out
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
	var hashers []Hasher
	var gaps []Gap
	for _, p := range probes {
		// A learner refuses to hash; it is no voter whose answer counts.
		if p.client != nil && p.Reachable && !p.Learner {
			hashers = append(hashers, p.hasher())
		}
	}
	h := CompareHashes(ctx, hashers)
	for _, m := range h.Members {
		if m.Error != "" {
			gaps = append(gaps, Gap{Member: m.Member, Check: KindHash, Reason: m.Error})
		}
	}
	if h.Result == HashesUnknown && voters > 1 { // one member has nobody to differ from
		gaps = append(gaps, Gap{Check: KindHash, Reason: fmt.Sprintf(
			"no two of %d members hashed one revision with one compact revision", len(hashers))})
	}
	return &h, gaps
}

func (p *probe) hasher() Hasher {
	return func(ctx context.Context, revision int64) (MemberHash, error) {
		ctx, cancel := context.WithTimeout(ctx, hashTimeout)
		defer cancel()
		out := MemberHash{Member: p.Label(), Endpoint: p.Endpoint}
		resp, err := p.client.HashKV(ctx, p.Endpoint, revision)
		if err != nil {
			return out, err
		}
		out.Hash, out.CompactRevision, out.Revision = resp.Hash, resp.CompactRevision, resp.HashRevision
		if out.Revision == 0 { // servers before 3.6
			out.Revision = resp.Header.Revision
		}
		return out, nil
	}
}
