package health

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/etcdkit/etcdkit/internal/output"
)

// Limits are the thresholds of judgement. A zero field means its default.
type Limits struct {
	Latency        time.Duration // median of linearizable reads; 100 ms
	Lag            uint64        // entries committed but not applied; 1000
	QuotaWarning   float64       // share of the quota used; 0.8
	QuotaCritical  float64       // 0.95
	Fragmentation  float64       // share of the file without data; 0.5
	FragmentedSize int64         // smaller losses are no problem; 100 MiB
	CertExpiry     time.Duration // left until expiry; 30 days
	Fsync          time.Duration // p99 of the sample; 10 ms
	Commit         time.Duration // p99 of the sample; 25 ms
	SampleCount    uint64        // fewer events are not judged; 50
}

const day = 24 * time.Hour

// criticalLag is where etcd itself refuses writes: "too many requests".
const criticalLag = 5000

func (l Limits) orDefaults() Limits {
	l.Latency = cmp.Or(l.Latency, 100*time.Millisecond)
	l.Lag = cmp.Or(l.Lag, 1000)
	l.QuotaWarning = cmp.Or(l.QuotaWarning, 0.8)
	l.QuotaCritical = cmp.Or(l.QuotaCritical, 0.95)
	l.Fragmentation = cmp.Or(l.Fragmentation, 0.5)
	l.FragmentedSize = cmp.Or(l.FragmentedSize, 100<<20)
	l.CertExpiry = cmp.Or(l.CertExpiry, 30*day)
	l.Fsync = cmp.Or(l.Fsync, 10*time.Millisecond)
	l.Commit = cmp.Or(l.Commit, 25*time.Millisecond)
	l.SampleCount = cmp.Or(l.SampleCount, 50)
	return l
}

// Check gathers and judges. The report is whole whatever the error, which is
// ErrUnhealthy, ErrUnknown or what kept it from asking at all.
func Check(ctx context.Context, doors Doors, endpoints []string, opts Options) (Report, error) {
	facts, err := Gather(ctx, doors, endpoints, opts)
	if err != nil {
		return Report{Verdict: Unknown, Problems: []Problem{}, Facts: facts}, err
	}
	report := Judge(facts, opts)
	return report, report.Err(opts.Strict)
}

// Err is the verdict as an error: nil for healthy, and for degraded unless
// strict.
func (r Report) Err(strict bool) error {
	warned := slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.Severity == Warning })
	switch {
	case r.Verdict == Unhealthy, strict && warned:
		return fmt.Errorf("%w: %s", ErrUnhealthy, r.worst())
	case r.Verdict == Unknown:
		return fmt.Errorf("%w: %s", ErrUnknown, r.missing())
	default:
		return nil
	}
}

func (r Report) worst() string {
	if len(r.Problems) == 0 {
		return string(r.Verdict)
	}
	p := r.Problems[0]
	return strings.TrimPrefix(p.Member+": "+p.Evidence, ": ")
}

func (r Report) missing() string {
	if r.Cluster.Answering == 0 && !slices.ContainsFunc(r.Members, func(m Member) bool { return m.Reachable }) {
		return "no endpoint answered"
	}
	for _, g := range r.Gaps {
		if g.Required {
			return strings.TrimPrefix(g.Member+": ", ": ") + "no evidence of " + string(g.Check) + ": " + g.Reason
		}
	}
	return "required evidence is missing"
}

// judge collects problems and gaps.
type judge struct {
	facts    Facts
	opts     Options
	limits   Limits
	problems []Problem
	ownCerts []string // the caller's own, that were judged
}

func (j *judge) find(s Severity, member string, c Kind, next, evidence string, args ...any) {
	j.problems = append(j.problems, Problem{
		Severity: s, Member: member, Check: c, Evidence: fmt.Sprintf(evidence, args...), Next: next,
	})
}

func (j *judge) gap(member string, c Kind, reason string) {
	j.facts.Gaps = append(j.facts.Gaps, Gap{Member: member, Check: c, Reason: reason})
}

// Judge is pure: the same facts give the same report.
func Judge(facts Facts, opts Options) Report {
	j := &judge{facts: facts, opts: opts, limits: opts.Limits.orDefaults(), problems: []Problem{}}
	j.facts.Gaps = slices.Clone(facts.Gaps)
	j.reach()
	j.quorum()
	j.namesApart()
	j.leader()
	j.versions()
	j.alarms()
	for _, m := range facts.Members {
		j.member(m)
	}
	j.hash()
	j.tolerance()
	j.downgrade()
	slices.SortStableFunc(j.problems, func(a, b Problem) int { return rank(a.Severity) - rank(b.Severity) })
	required := j.require()
	if j.facts.Gaps == nil {
		j.facts.Gaps = []Gap{}
	}
	return Report{Verdict: j.verdict(required), Problems: j.problems, Facts: j.facts}
}

func rank(s Severity) int { return slices.Index([]Severity{Critical, Warning, Info}, s) }

// require marks the gaps that matter and reports whether there is one.
func (j *judge) require() bool {
	missing := false
	for i := range j.facts.Gaps {
		g := &j.facts.Gaps[i]
		g.Required = slices.Contains([]Kind{KindReach, KindLeader, KindQuota, KindAlarms}, g.Check) ||
			slices.Contains(j.opts.Require, g.Check)
		missing = missing || g.Required
	}
	return missing
}

func (j *judge) verdict(missing bool) Verdict {
	worst := Info
	if len(j.problems) > 0 {
		worst = j.problems[0].Severity
	}
	answered := slices.ContainsFunc(j.facts.Members, func(m Member) bool { return m.Reachable })
	switch {
	case !answered:
		return Unknown
	case worst == Critical:
		return Unhealthy
	case missing:
		return Unknown
	case worst == Warning:
		return Degraded
	default:
		return Healthy
	}
}

func (j *judge) leader() {
	leaders := map[uint64][]string{}
	for _, m := range j.facts.Members {
		if m.Status == nil {
			continue
		}
		if m.Status.LeaderID == 0 {
			j.find(Critical, m.Label(), KindLeader, noLeaderNext(j.facts), "the member knows no leader; %s", VotingOf(j.facts.Members))
			continue
		}
		leaders[m.Status.LeaderID] = append(leaders[m.Status.LeaderID], m.Label())
	}
	if len(leaders) > 1 {
		var views []string
		for id, who := range leaders {
			views = append(views, fmt.Sprintf("%s for %s", output.ID(id), strings.Join(who, ", ")))
		}
		slices.Sort(views)
		j.find(Critical, "", KindLeader, "check the network between the members (peer URLs)",
			"the members follow different leaders: %s", strings.Join(views, "; "))
	}
}

func (j *judge) alarms() {
	seen := map[Alarm]bool{}
	for _, m := range j.facts.Members {
		if m.Status == nil {
			continue
		}
		for _, a := range m.Status.Alarms {
			if !seen[a] {
				seen[a] = true
				j.alarm(a)
			}
		}
	}
}

func (j *judge) alarm(a Alarm) {
	who := output.ID(a.MemberID)
	for _, m := range j.facts.Members {
		if m.ID == a.MemberID {
			who = m.Label()
		}
	}
	switch a.Kind {
	case alarmNoSpace:
		severity := Critical
		if j.opts.NoSpace {
			severity = Info
		}
		j.find(severity, who, KindAlarms, recoverNext,
			"alarm NOSPACE is armed: the cluster refuses writes")
	case alarmCorrupt:
		if slices.Contains(corruptGone(j.facts), a.MemberID) {
			j.find(Critical, who, KindAlarms, goneNext,
				"alarm CORRUPT is armed for a member that is gone: the cluster refuses writes")
			return
		}
		j.find(Critical, who, KindAlarms, "etcdkit check consistency",
			"alarm CORRUPT is armed: the member's data differ from the others', and the cluster refuses writes")
	default:
		j.find(Critical, who, KindAlarms, "etcdkit alarm list", "alarm %s is armed", a.Kind)
	}
}

func (j *judge) hash() {
	h := j.facts.Cluster.Hash
	if h == nil || h.Result != HashesDiffer {
		return
	}
	if h.Ahead != "" {
		j.find(Critical, "", KindHash, "etcdkit check consistency", "the members' data differ: %s", h.Ahead)
		return
	}
	var parts []string
	for _, m := range h.Members {
		if m.Error == "" {
			parts = append(parts, fmt.Sprintf("%s %08x (compacted at %d)", m.Member, m.Hash, m.CompactRevision))
		}
	}
	j.find(Critical, "", KindHash, "etcdkit check consistency", "the members' data differ at revision %d: %s",
		h.Revision, strings.Join(parts, ", "))
}

// Optional reports whether evidence of this kind may be missing, so that it
// can be required.
func Optional(k Kind) bool {
	return slices.Contains([]Kind{KindReads, KindMetrics, KindCerts, KindHash, KindVersion, KindMembers}, k)
}
