package health

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/hint"
)

// ErrDiffers means that members hold different data.
var ErrDiffers = errors.New("the members' data differ")

// ErrNotCompared means that not all members could be compared.
var ErrNotCompared = errors.New("not all members could be compared")

// Consistency is the comparison of all members' data at one revision.
type Consistency struct {
	Hashes
	Gaps []Gap `json:"gaps"`
	// Differences are the live keys that differ, where the hashes do. None
	// means that the difference lies in history or in deleted keys.
	Differences []Difference `json:"differences"`
	Truncated   bool         `json:"truncated"` // there are more
	ComparedAt  int64        `json:"comparedAtRevision,omitempty"`
	Keys        int64        `json:"keysCompared"`
	// Suspects are the members that disagree with a majority, the worst first.
	Suspects []Suspect `json:"suspects"`

	members []Member
	cluster uint64
}

// member is the member of a hash.
func (c *Consistency) member(label string) Member {
	for _, m := range c.members {
		if m.Label() == label {
			return m
		}
	}
	return Member{}
}

// Difference is a live key that is not the same on all members.
type Difference struct {
	Key     string    `json:"key"`
	Members []Version `json:"members"`
}

// Version is what a member holds under a key. Values are told by their hash.
type Version struct {
	Member         string `json:"member"`
	Present        bool   `json:"present"`
	ModRevision    int64  `json:"modRevision"`
	Version        int64  `json:"version"`
	CreateRevision int64  `json:"createRevision"`
	Lease          int64  `json:"lease"` // 0 without one
	ValueBytes     int    `json:"valueBytes"`
	ValueSHA256    string `json:"valueSHA256"` // the first 16 digits
}

// Suspect counts the keys in which a member stands against a majority.
type Suspect struct {
	Member string `json:"member"`
	Keys   int64  `json:"keys"`
	Next   string `json:"next"` // the command that gives it fresh data
}

// ConsistencyOptions bounds a comparison.
type ConsistencyOptions struct {
	Options
	MaxDifferences int // listed; 0 means 100
}

const defaultMaxDifferences = 100

// Compare hashes all voters' data at one revision.
func Compare(ctx context.Context, doors Doors, endpoints []string, opts Options) (Consistency, error) {
	opts.Hash = true
	doors.Scrape, doors.Handshake = nil, nil
	facts, err := Gather(ctx, doors, endpoints, opts)
	c := Consistency{Gaps: []Gap{}, Differences: []Difference{}, Suspects: []Suspect{}}
	if err != nil {
		return c, err
	}
	c.Hashes, c.members, c.cluster = *facts.Cluster.Hash, facts.Members, facts.Cluster.ID
	for _, g := range facts.Gaps {
		if g.Check == KindHash || g.Check == KindMembers {
			c.Gaps = append(c.Gaps, g)
		}
	}
	for _, m := range facts.Members {
		if !m.Reachable && m.Error != NotAsked && !m.Learner {
			c.Gaps = append(c.Gaps, Gap{Member: m.Label(), Check: KindReach, Reason: m.Error})
		}
	}
	return c, c.err(facts)
}

// err is the comparison as an error. A cluster of one has nobody to differ
// from.
func (c Consistency) err(facts Facts) error {
	switch {
	case c.Result == HashesDiffer:
		if c.Ahead != "" {
			return hint.With(fmt.Errorf("%w: %s", ErrDiffers, c.Ahead), "one of them has applied what the others have not: see \"etcdkit health --hash\" again, and docs/disaster-recovery.md for a corrupt member")
		}
		return fmt.Errorf("%w at revision %d", ErrDiffers, c.Revision)
	case c.Result == HashesEqual && len(c.Gaps) == 0:
		return nil
	case c.Result == HashesEqual:
		return hint.With(fmt.Errorf("%w: %s: %s", ErrNotCompared, c.Gaps[0].Member, c.Gaps[0].Reason),
			"those that were compared agree; see what is wrong with the others with: etcdkit health")
	case c.Result == HashesSingle:
		return nil
	case !slices.ContainsFunc(facts.Members, func(m Member) bool { return m.Reachable }):
		return hint.With(fmt.Errorf("%w: no endpoint answered", ErrNotCompared), "%s", facts.Members[0].next())
	case len(c.Gaps) > 0 && !slices.ContainsFunc(c.Members, func(m MemberHash) bool { return m.Error == "" }):
		return hint.With(fmt.Errorf("%w: %s: %s", ErrNotCompared, c.Gaps[0].Member, c.Gaps[0].Reason),
			"with authentication on, a hash needs a user with the role root; what else is wrong is told by: etcdkit health")
	case c.Ahead != "":
		return hint.With(fmt.Errorf("%w: %s", ErrNotCompared, c.Ahead), "try again")
	default:
		return hint.With(fmt.Errorf("%w: no two hashed one revision with one compact revision", ErrNotCompared),
			"see who answers with: etcdkit health; when a compaction ran meanwhile, try again")
	}
}

// CheckConsistency compares all members, and on disagreement finds the live
// keys that differ.
func CheckConsistency(ctx context.Context, doors Doors, endpoints []string, opts ConsistencyOptions) (Consistency, error) {
	if opts.MaxDifferences <= 0 {
		opts.MaxDifferences = defaultMaxDifferences
	}
	c, err := Compare(ctx, doors, endpoints, opts.Options)
	if !errors.Is(err, ErrDiffers) {
		return c, err
	}
	if narrowErr := c.narrow(ctx, doors, opts); narrowErr != nil {
		return c, errors.Join(err, fmt.Errorf("find the keys that differ: %w", narrowErr))
	}
	return c, err
}

// narrow walks all members' live keys side by side at the revision hashed, or
// each at its own newest revision where these differ though the members have
// applied the same entries. Reads are serializable: it is each member's own data
// that is wanted.
func (c *Consistency) narrow(ctx context.Context, doors Doors, opts ConsistencyOptions) error {
	var walkers []*walker
	for _, m := range c.Members {
		at := c.Revision
		if c.Ahead != "" {
			at = m.NewestRevision
		}
		if m.Error != "" || at == 0 {
			continue
		}
		client, err := dialIdentified(ctx, doors, c.member(m.Member), c.cluster)
		if err != nil {
			return fmt.Errorf("%s: %w", m.Member, err)
		}
		defer func() { _ = client.Close() }()
		walkers = append(walkers, &walker{name: m.Member, client: client, revision: at, next: "\x00", limit: 100})
	}
	if c.Ahead == "" {
		c.ComparedAt = c.Revision
	}
	suspects := map[string]int64{}
	for {
		key, found, err := lowest(ctx, walkers)
		if err != nil || !found {
			c.rank(suspects)
			return err
		}
		c.Keys++
		versions := take(walkers, key)
		odd := minority(versions)
		if len(odd) == 0 {
			continue
		}
		for _, name := range odd {
			suspects[name]++
		}
		if len(c.Differences) < opts.MaxDifferences {
			c.Differences = append(c.Differences, Difference{Key: string(key), Members: versions})
		} else {
			c.Truncated = true
		}
	}
}

func (c *Consistency) rank(suspects map[string]int64) {
	for _, m := range c.members {
		if n := suspects[m.Label()]; n > 0 {
			c.Suspects = append(c.Suspects, Suspect{m.Label(), n, ReplaceCommand(m)})
		}
	}
	slices.SortStableFunc(c.Suspects, func(a, b Suspect) int { return int(b.Keys - a.Keys) })
}

// walker reads one member's live keys in order, a page at a time.
type walker struct {
	name     string
	client   Client
	revision int64
	next     string
	limit    int64
	page     []*mvccpb.KeyValue
	done     bool
}

func (w *walker) fill(ctx context.Context) error {
	if len(w.page) > 0 || w.done {
		return nil
	}
	resp, err := surveyPageAt(ctx, w.client, w.next, w.limit, w.revision)
	if err != nil {
		return fmt.Errorf("%s: %w", w.name, err)
	}
	w.page, w.done = resp.Kvs, !resp.More
	if len(w.page) == 0 {
		w.done = true
		return nil
	}
	w.next = string(w.page[len(w.page)-1].Key) + "\x00"
	w.limit = nextLimit(resp)
	return nil
}

// lowest returns the lowest key that any member has next.
func lowest(ctx context.Context, walkers []*walker) (key []byte, found bool, err error) {
	for _, w := range walkers {
		if err := w.fill(ctx); err != nil {
			return nil, false, err
		}
		if len(w.page) > 0 && (!found || bytes.Compare(w.page[0].Key, key) < 0) {
			key, found = w.page[0].Key, true
		}
	}
	return key, found, nil
}

// take takes the key off every walker that has it.
func take(walkers []*walker, key []byte) []Version {
	versions := make([]Version, len(walkers))
	for i, w := range walkers {
		versions[i].Member = w.name
		if len(w.page) == 0 || !bytes.Equal(w.page[0].Key, key) {
			continue
		}
		kv := w.page[0]
		w.page = w.page[1:]
		sum := sha256.Sum256(kv.Value)
		versions[i] = Version{
			Member: w.name, Present: true, ModRevision: kv.ModRevision, Version: kv.Version,
			CreateRevision: kv.CreateRevision, Lease: kv.Lease,
			ValueBytes: len(kv.Value), ValueSHA256: fmt.Sprintf("%x", sum[:8]),
		}
	}
	return versions
}

// minority returns the members that do not hold what most hold, or all where
// no majority agrees; none where all agree.
func minority(versions []Version) []string {
	content := func(v Version) Version { v.Member = ""; return v }
	counts := map[Version]int{}
	for _, v := range versions {
		counts[content(v)]++
	}
	if len(counts) == 1 {
		return nil
	}
	var odd []string
	for _, v := range versions {
		if 2*counts[content(v)] <= len(versions) {
			odd = append(odd, v.Member)
		}
	}
	return odd
}

// nextLimit is how many keys the next page may have to stay near the aim.
func nextLimit(resp *clientv3.GetResponse) int64 {
	size := int64(0)
	for _, kv := range resp.Kvs {
		size += int64(len(kv.Key) + len(kv.Value))
	}
	return min(surveyMaxKeys, max(1, surveyPage*int64(len(resp.Kvs))/max(1, size)))
}
