package health

import (
	"context"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/output"
)

// attach returns a probe for each member of the list, in its order, then those
// of the endpoints given that answered as no listed member. A member's facts
// come from an answer with its own id: of an endpoint given, else of one of the
// client URLs that it advertises.
func attach(ctx context.Context, doors Doors, given []*probe, list *clientv3.MemberListResponse, opts Options) []*probe {
	out := make([]*probe, len(list.Members))
	for i, m := range list.Members {
		out[i] = claim(given, m, list.Members)
		if opts.Only && !out[i].Reachable && out[i].Error == "" {
			out[i].Error = NotAsked
		}
		out[i].enlist(m)
	}
	nameApart(out)
	cluster := list.Header.GetClusterId()
	each(out, func(p *probe) {
		if !p.Reachable && !opts.Only {
			p.askEverywhere(ctx, doors, cluster, given, opts)
		}
	})
	for _, p := range given {
		if !slices.ContainsFunc(list.Members, func(m *pb.Member) bool { return p.speaksFor(m) }) {
			out = append(out, p)
		}
	}
	return out
}

// claim returns the probe that the member itself answered, best at a URL of its
// own, or one with what the member's URLs brought among the endpoints given.
func claim(given []*probe, m *pb.Member, all []*pb.Member) *probe {
	var best *probe
	for _, p := range given {
		if p.who.member == m.GetID() && m.GetID() != 0 && (best == nil || hasURL(m.GetClientURLs(), p.Endpoint) && !hasURL(m.GetClientURLs(), best.Endpoint)) {
			best = p
		}
	}
	if best != nil {
		return best
	}
	found := &probe{}
	for _, p := range given {
		switch {
		case !hasURL(m.GetClientURLs(), p.Endpoint):
		case p.who.member != 0:
			other := &OtherMemberError{URL: p.Endpoint, Member: p.who.member, Cluster: p.who.cluster}
			found.otherAnswered(other)
			found.Endpoint, found.Error = p.Endpoint, other.Error()
		case p.Reachable && owners(all, p.Endpoint) == 1:
			return p // it answers, and hides who it is
		case p.Reachable:
			found.Endpoint, found.Error = p.Endpoint, "several members advertise this URL, and who answers there is not told: "+p.Error
		default:
			found.Endpoint, found.Error, found.hint = p.Endpoint, p.Error, p.hint
		}
	}
	return found
}

// owners counts the members that advertise the endpoint.
func owners(members []*pb.Member, endpoint string) (n int) {
	for _, m := range members {
		if hasURL(m.GetClientURLs(), endpoint) {
			n++
		}
	}
	return n
}

// speaksFor reports whether what the probe brought is told of the listed member.
func (p *probe) speaksFor(m *pb.Member) bool {
	if p.who.member != 0 {
		return p.who.member == m.GetID()
	}
	return hasURL(m.GetClientURLs(), p.Endpoint)
}

func hasURL(urls []string, endpoint string) bool {
	return slices.ContainsFunc(urls, func(u string) bool { return bare(u) == bare(endpoint) })
}

func (p *probe) enlist(m *pb.Member) {
	p.Listed, p.Name, p.Learner = true, m.GetName(), m.GetIsLearner()
	p.ID, p.IDHex = m.GetID(), output.ID(m.GetID())
	p.PeerURLs, p.ClientURLs = m.GetPeerURLs(), m.GetClientURLs()
	for i := range p.gaps {
		p.gaps[i].Member = p.Label()
	}
	if p.Endpoint == "" && len(m.GetClientURLs()) > 0 {
		p.Endpoint, p.FromList = m.GetClientURLs()[0], true
	}
	if len(m.GetClientURLs()) == 0 && p.Error == "" && p.Status == nil {
		p.Error = "never started: the member has no client URL yet"
	}
}

// nameApart gives members of one name a label that tells them apart.
func nameApart(probes []*probe) {
	names := map[string]int{}
	for _, p := range probes {
		names[p.Name]++
	}
	for _, p := range probes {
		if p.Name != "" && names[p.Name] > 1 {
			p.label = p.Name + " (" + p.IDHex + ")"
		}
		for i := range p.gaps {
			p.gaps[i].Member = p.Label()
		}
	}
}

// askEverywhere asks all client URLs of the member that were not asked yet, and
// takes the first that answers with the member's own id.
func (p *probe) askEverywhere(ctx context.Context, doors Doors, cluster uint64, given []*probe, opts Options) {
	var tries []*probe
	for _, url := range p.ClientURLs {
		known := slices.ContainsFunc(given, func(g *probe) bool { return bare(g.Endpoint) == bare(url) }) ||
			slices.ContainsFunc(tries, func(t *probe) bool { return bare(t.Endpoint) == bare(url) })
		if !known {
			tries = append(tries, &probe{Member: Member{Endpoint: url, FromList: true}, who: identity{p.ID, cluster}})
		}
	}
	each(tries, func(t *probe) { t.ask(ctx, doors, opts) })
	own := slices.IndexFunc(tries, func(t *probe) bool { return t.Reachable })
	for i, t := range tries {
		p.OtherAnswers = append(p.OtherAnswers, t.OtherAnswers...)
		if t.final != nil {
			p.final = t.final
		}
		switch {
		case i == own:
			p.take(t)
		default:
			if own < 0 && len(p.OtherAnswers) == len(t.OtherAnswers) {
				p.Endpoint, p.FromList, p.Error, p.hint = t.Endpoint, true, t.Error, t.hint
			}
			closeAll([]*probe{t})
		}
	}
	if own < 0 && len(p.OtherAnswers) > 0 {
		o := p.OtherAnswers[0]
		p.Endpoint, p.hint = o.URL, ""
		p.Error = (&OtherMemberError{URL: o.URL, Member: o.MemberID}).Error()
	}
}

// take adopts what a URL of the member brought.
func (p *probe) take(t *probe) {
	p.Endpoint, p.FromList, p.Error, p.hint = t.Endpoint, t.FromList, t.Error, t.hint
	p.Reachable, p.identified, p.Status, p.who, p.client, p.list = t.Reachable, t.identified, t.Status, t.who, t.client, t.list
	for _, g := range t.gaps {
		g.Member = p.Label()
		p.gaps = append(p.gaps, g)
	}
}
