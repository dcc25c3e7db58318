package health

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/output"
)

// ErrAmbiguous means that a name or a URL belongs to several members.
var ErrAmbiguous = errors.New("ambiguous member")

// Resolve returns the member that people mean by arg, for all commands alike:
// its id in hexadecimal, its name, or one of its URLs, with or without the
// scheme and a closing slash. A name or a URL is only a way to find it: what
// fits several members is ErrAmbiguous, what fits none is ErrNoMember.
func Resolve(members []Member, arg string) (Member, error) {
	if i := slices.IndexFunc(members, func(m Member) bool { return m.ID != 0 && strings.EqualFold(arg, m.IDHex) }); i >= 0 {
		return members[i], nil // whoever has that for a name has an id as well
	}
	var found []Member
	for _, m := range members {
		if means(m, arg) {
			found = append(found, m)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return Member{}, hint.With(fmt.Errorf("%w %q in the cluster", ErrNoMember, arg), "the members are: %s", roll(members))
	}
	return Member{}, hint.With(fmt.Errorf("%w: %q fits %d members: %s", ErrAmbiguous, arg, len(found), roll(found)),
		"name the member by its id, such as %s", found[0].IDHex)
}

// Listed returns the members of a member list, as nothing is known of them
// beyond it.
func Listed(list []*pb.Member) []Member {
	out := make([]Member, len(list))
	for i, m := range list {
		out[i] = Member{
			Listed: true, ID: m.GetID(), IDHex: output.ID(m.GetID()), Name: m.GetName(), Learner: m.GetIsLearner(),
			PeerURLs: m.GetPeerURLs(), ClientURLs: m.GetClientURLs(),
		}
	}
	return out
}

// Listed are the members of the cluster, without endpoints that are none's.
func (f Facts) Listed() []Member {
	return slices.DeleteFunc(slices.Clone(f.Members), func(m Member) bool { return !m.Listed })
}

// Speaker returns a voter that is alive, to ask for a change: another than the
// one that leaves, if there is one.
func (f Facts) Speaker(leaving uint64) (Member, bool) {
	var last *Member
	for i, m := range f.Members {
		switch {
		case !m.speaks():
		case m.ID != leaving:
			return m, true
		default:
			last = &f.Members[i]
		}
	}
	if last == nil {
		return Member{}, false
	}
	return *last, true
}

// speaks reports whether the member can be asked for a change.
func (m Member) speaks() bool { return m.Listed && !m.Learner && m.Life().Alive }

// CleanURLs are URLs without closing slashes, which etcd refuses in peer URLs.
func CleanURLs(urls []string) []string {
	out := make([]string, len(urls))
	for i, u := range urls {
		out[i] = strings.TrimSuffix(strings.TrimSpace(u), "/")
	}
	return out
}

func means(m Member, arg string) bool {
	if arg == "" {
		return false
	}
	id, err := strconv.ParseUint(strings.TrimPrefix(strings.ToLower(arg), "0x"), 16, 64)
	return err == nil && m.ID != 0 && id == m.ID || arg == m.Name ||
		m.Endpoint != "" && bare(arg) == bare(m.Endpoint) || hasURL(m.ClientURLs, arg) || hasURL(m.PeerURLs, arg)
}

// roll lists members by id, name and peer URLs.
func roll(members []Member) string {
	parts := make([]string, len(members))
	for i, m := range members {
		parts[i] = strings.TrimSpace(m.IDHex + " " + m.Name)
		if len(m.PeerURLs) > 0 {
			parts[i] += " at " + strings.Join(m.PeerURLs, ",")
		}
	}
	return strings.Join(parts, "; ")
}

// sharesURL reports whether two lists of URLs have one in common.
func sharesURL(a, b []string) bool {
	return slices.ContainsFunc(a, func(u string) bool { return hasURL(b, u) })
}
