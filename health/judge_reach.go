package health

import (
	"cmp"
	"slices"
	"strings"
)

// reach judges who answers.
func (j *judge) reach() {
	for _, m := range j.facts.Members {
		switch {
		case m.Error == NotAsked:
		case m.Reachable:
			for _, o := range m.OtherAnswers {
				j.find(Info, m.Label(), KindReach, "nothing, if the URL is meant to be shared; members are asked at their own URLs",
					"%s, which the member advertises, was answered by %s", o.URL, j.who(o))
			}
		case len(m.OtherAnswers) > 0:
			o := m.OtherAnswers[0]
			j.find(Critical, m.Label(), KindReach,
				"give the member a client URL of its own (--advertise-client-urls), and until then name its address with --endpoints",
				"not seen: %s, which the member advertises, was answered by %s", o.URL, j.who(o))
		case m.Listed && len(m.ClientURLs) == 0:
			j.find(Warning, m.Label(), KindReach, "start it, or: etcdkit member remove "+m.IDHex, "%s", m.Error)
		case m.Listed && m.FromList && readsServed(j.facts):
			j.find(Warning, m.Label(), KindReach, m.next()+"; if only this host cannot reach that URL: name an endpoint of the member with --endpoints, or run this from a host that can",
				"not seen from here: no answer at %s, which comes from the member list: %s", m.Endpoint, m.Error)
		case m.Listed:
			j.find(Warning, m.Label(), KindReach, m.next()+" (when it is lost for good: "+ReplaceCommand(m)+")",
				"no answer at %s: %s", m.Endpoint, m.Error)
		default:
			j.find(Warning, m.Label(), KindReach, cmp.Or(m.hint, "check --endpoints"),
				"no answer, and no member is known there: %s", m.Error)
		}
	}
}

// who names the member that answered instead of another.
func (j *judge) who(o OtherAnswer) string {
	for _, m := range j.facts.Members {
		if m.ID == o.MemberID {
			return m.Named()
		}
	}
	return "member " + o.MemberIDHex + " of cluster " + o.ClusterIDHex
}

// quorum judges whether enough voters are alive.
func (j *judge) quorum() {
	voting := VotingOf(j.facts.Members)
	if voting.Voters == 0 {
		j.gap("", KindReach, "the cluster's members are not known")
		return
	}
	asked := !slices.ContainsFunc(j.facts.Members, func(m Member) bool { return m.Error == NotAsked })
	switch {
	case !readsServed(j.facts) || !asked:
	case !voting.Serves():
		j.find(Warning, "", KindQuorum, elsewhereNext, "reads are served, but only %s", voting)
	case voting.CanLose() == 0 && voting.Alive < voting.Voters:
		j.find(Warning, "", KindQuorum, aliveFirst(j.facts)+", before anything else; wait with: etcdkit health --watch 5s",
			"%s: the next failure stops the cluster", voting)
	}
}

// noLeaderNext is what helps a member without a leader: it alone, where the
// others have one.
func noLeaderNext(facts Facts) string {
	if readsServed(facts) {
		return "check the network between this member and the others (peer URLs)"
	}
	return quorumNext
}

// namesApart judges what should tell members apart and does not: a name, or a
// client URL that is a member's only one.
func (j *judge) namesApart() {
	names, urls := map[string][]Member{}, map[string][]Member{}
	for _, m := range j.facts.Members {
		if m.Listed && m.Name != "" {
			names[m.Name] = append(names[m.Name], m)
		}
		if m.Listed && len(m.ClientURLs) == 1 {
			urls[bare(m.ClientURLs[0])] = append(urls[bare(m.ClientURLs[0])], m)
		}
	}
	for _, m := range j.facts.Members { // in the order of the list
		if same := names[m.Name]; len(same) > 1 && same[0].ID == m.ID {
			j.find(Warning, "", KindMembers, "name these members by their ids, and give each a --name of its own at its next restart",
				"%d members have the name %q: %s", len(same), m.Name, ids(same))
		}
		if len(m.ClientURLs) != 1 {
			continue
		}
		if same := urls[bare(m.ClientURLs[0])]; len(same) > 1 && same[0].ID == m.ID {
			j.find(Warning, "", KindMembers, "give each member a client URL of its own with --advertise-client-urls",
				"%d members advertise %s and no other client URL: %s", len(same), m.ClientURLs[0], ids(same))
		}
	}
}

func ids(members []Member) string {
	parts := make([]string, len(members))
	for i, m := range members {
		parts[i] = m.Named()
	}
	return strings.Join(parts, ", ")
}
