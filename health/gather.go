package health

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/output"
)

// Client is the part of *clientv3.Client that gathering uses on one member.
type Client interface {
	Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error)
	MemberList(ctx context.Context, opts ...clientv3.OpOption) (*clientv3.MemberListResponse, error)
	Status(ctx context.Context, endpoint string) (*clientv3.StatusResponse, error)
	HashKV(ctx context.Context, endpoint string, rev int64) (*clientv3.HashKVResponse, error)
	AlarmList(ctx context.Context) (*clientv3.AlarmResponse, error)
	Close() error
}

// Doors are the ways to a cluster. Only Dial is needed; without another, its
// evidence is a gap.
type Doors struct {
	// Dial opens a client pinned to one endpoint. It need not wait for it.
	Dial func(ctx context.Context, endpoint string) (Client, error)
	// Final, if set, tells the errors of Dial that say nothing about the member,
	// such as the caller's own refusal. They end the gathering.
	Final func(err error) bool
	// Explain, if set, replaces the error of an endpoint that did not answer
	// with one that names the cause.
	Explain func(ctx context.Context, endpoint string, err error) error
	// Scrape reads the metrics page of the member at a client URL.
	Scrape func(ctx context.Context, clientURL string) (Samples, error)
	// Handshake returns the certificates that are in use at a URL, the
	// caller's own among them.
	Handshake func(ctx context.Context, url string) ([]Certificate, error)
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Options says how much evidence to gather, and what is required. The zero
// value asks every member of the cluster for what it tells about itself.
type Options struct {
	Timeout time.Duration // of each request; 0 means 5 s
	Reads   int           // linearizable reads through each voter; 0 means 5
	Sample  time.Duration // between two looks at the metrics; 0 means none, unless the quota is there only
	Hash    bool          // compare the members' hashes
	Only    bool          // the given endpoints, not the other members
	Quota   int64         // of servers that do not tell theirs; 0 means none
	Require []Kind        // evidence that must not be missing, beside the required
	Strict  bool          // degraded is not good enough
	Limits  Limits
	NoSpace bool // an armed NOSPACE alarm, and what it entails, is expected
}

// NotAsked is the error of members outside of the endpoints given.
const NotAsked = "not asked"

const (
	defaultTimeout = 5 * time.Second
	defaultReads   = 5
)

func (o Options) timeout() time.Duration {
	if o.Timeout > 0 {
		return o.Timeout
	}
	return defaultTimeout
}

// Gather asks every member at once. Results are in the order of the member
// list; endpoints that answered as no listed member follow.
func Gather(ctx context.Context, doors Doors, endpoints []string, opts Options) (Facts, error) {
	if len(endpoints) == 0 {
		return Facts{}, errors.New("gather facts: no endpoint given")
	}
	now := doors.Now
	if now == nil {
		now = time.Now
	}
	facts := Facts{Time: now().UTC(), Members: []Member{}, Gaps: []Gap{}}
	given := contact(ctx, doors, endpoints, opts)
	probes := given
	defer func() { closeAll(slices.Concat(given, probes)) }()
	if err := oneCluster(given); err != nil {
		facts.Members = membersOf(given)
		return facts, err
	}
	list := newestList(given)
	if list != nil {
		probes = attach(ctx, doors, given, list, opts)
	}
	if i := slices.IndexFunc(slices.Concat(given, probes), func(p *probe) bool { return p.final != nil }); i >= 0 {
		return facts, slices.Concat(given, probes)[i].final
	}
	settle(ctx, probes, opts)
	each(probes, func(p *probe) { p.examine(ctx, doors, opts) })
	replicate(ctx, probes, opts)
	if list == nil {
		facts.Gaps = append(facts.Gaps, Gap{Check: KindMembers, Reason: "no endpoint returned the member list"})
	}
	facts.Members = membersOf(probes)
	for _, p := range probes {
		facts.Gaps = append(facts.Gaps, p.gaps...)
	}
	facts.Cluster = summarize(facts.Members, list)
	if opts.Hash {
		var gaps []Gap
		facts.Cluster.Hash, gaps = compareHashes(ctx, probes, facts.Cluster.Voters)
		facts.Gaps = append(facts.Gaps, gaps...)
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return facts, context.Cause(ctx) // nobody's silence means anything then
	}
	return facts, nil
}

// membersOf is what was seen of each member.
func membersOf(probes []*probe) []Member {
	out := []Member{}
	for _, p := range probes {
		p.PeerURLs, p.ClientURLs = append([]string{}, p.PeerURLs...), append([]string{}, p.ClientURLs...) // of a member not listed too
		out = append(out, p.Member)
	}
	return out
}

// each runs fn on every probe side by side.
func each(probes []*probe, fn func(*probe)) {
	var wg sync.WaitGroup
	for _, p := range probes {
		wg.Go(func() { fn(p) })
	}
	wg.Wait()
}

func closeAll(probes []*probe) {
	for _, p := range probes {
		if p.client != nil {
			_ = p.client.Close() // only reads went through it
		}
	}
}

func contact(ctx context.Context, doors Doors, endpoints []string, opts Options) []*probe {
	var probes []*probe
	for _, ep := range endpoints {
		if !slices.ContainsFunc(probes, func(p *probe) bool { return bare(p.Endpoint) == bare(ep) }) {
			probes = append(probes, &probe{Member: Member{Endpoint: ep}})
		}
	}
	each(probes, func(p *probe) { p.ask(ctx, doors, opts) })
	return probes
}

// newestList returns the member list of the member that has applied most:
// serializable lists of members that lag are old.
func newestList(probes []*probe) *clientv3.MemberListResponse {
	var best *probe
	for _, p := range probes {
		if p.list != nil && (best == nil || p.applied() > best.applied()) {
			best = p
		}
	}
	if best == nil {
		return nil
	}
	return best.list
}

func (p *probe) applied() uint64 {
	if p.Status == nil {
		return 0
	}
	return p.Status.Applied
}

// settle asks again where members disagree on the leader, which right after
// an election they do for a moment.
func settle(ctx context.Context, probes []*probe, opts Options) {
	const tries, pause = 3, 300 * time.Millisecond
	for range tries {
		if agree(probes) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		each(probes, func(p *probe) {
			if p.Status == nil {
				return
			}
			ctx, cancel := context.WithTimeout(ctx, opts.timeout())
			defer cancel()
			if err := p.status(ctx); err != nil {
				p.lose(err)
			}
		})
	}
}

func agree(probes []*probe) bool {
	var leader uint64
	for _, p := range probes {
		switch {
		case p.Status == nil:
			continue
		case p.Status.LeaderID == 0:
			return false
		case leader == 0:
			leader = p.Status.LeaderID
		case leader != p.Status.LeaderID:
			return false
		}
	}
	return true
}

// bare is an endpoint without its scheme and closing slash.
func bare(endpoint string) string {
	if _, rest, ok := strings.Cut(endpoint, "://"); ok {
		endpoint = rest
	}
	return strings.TrimSuffix(endpoint, "/")
}

func summarize(members []Member, list *clientv3.MemberListResponse) Cluster {
	v := VotingOf(members)
	c := Cluster{Voters: v.Voters, Alive: v.Alive, Quorum: v.Quorum(), CanLose: v.CanLose()}
	if list != nil {
		c.ID = list.Header.GetClusterId()
	}
	c.IDHex = output.ID(c.ID)
	leader := leaderID(members)
	for _, m := range members {
		switch {
		case m.Listed && m.Learner:
			c.Learners++
		case m.Listed && m.Reachable:
			c.Answering++
		}
		if leader != 0 && m.ID == leader {
			c.Leader = m.Label()
		}
	}
	return c
}

// leaderID is the leader that the member with the highest term knows.
func leaderID(members []Member) (id uint64) {
	var term uint64
	for _, m := range members {
		if m.Status != nil && m.Status.LeaderID != 0 && m.Status.Term >= term {
			id, term = m.Status.LeaderID, m.Status.Term
		}
	}
	return id
}
