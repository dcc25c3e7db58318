package health

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-semver/semver"

	"github.com/etcdkit/etcdkit/internal/output"
)

// member judges what one member shows.
func (j *judge) member(m Member) {
	if !m.Reachable {
		j.certs(m)
		return
	}
	if m.Status == nil {
		j.gap(m.Label(), KindAlarms, "the member's status was refused: "+m.Error)
	} else {
		j.lag(m)
		j.space(m)
	}
	j.reads(m)
	j.certs(m)
	j.metrics(m)
	j.membership(m)
}

func (j *judge) reads(m Member) {
	switch {
	case m.Reads == nil:
	case m.Reads.Error != "":
		j.find(Critical, m.Label(), KindReads, "etcdkit endpoint status --cluster",
			"a linearizable read failed: %s", m.Reads.Error)
	case m.Reads.MedianSeconds > j.limits.Latency.Seconds():
		j.find(Warning, m.Label(), KindReads, "etcdkit health --sample 5s (fsync, commit and peer round trips)",
			"linearizable reads take %s (median of %d), above %s",
			seconds(m.Reads.MedianSeconds), m.Reads.Count, j.limits.Latency)
	}
}

// recoverNext shows the way out of NOSPACE.
const recoverNext = "etcdkit alarm recover --dry-run"

// lag judges what the member has committed but not applied, and how far it is
// behind the member that has committed most.
func (j *judge) lag(m Member) {
	var highest uint64
	for _, o := range j.facts.Members {
		if o.Status != nil && o.Reachable && o.Listed == m.Listed {
			highest = max(highest, o.Status.Index)
		}
	}
	s := m.Status
	behind := s.Index - min(s.Index, s.Applied)
	far := highest - min(highest, s.Applied)
	next := "etcdkit health --sample 5s (its fsync and commit times)"
	switch {
	case behind >= criticalLag:
		j.find(Critical, m.Label(), KindLag, next, "%d committed entries are not applied: etcd refuses writes from %d on",
			behind, criticalLag)
	case behind >= j.limits.Lag:
		j.find(Warning, m.Label(), KindLag, next, "%d committed entries are not applied", behind)
	case far >= criticalLag:
		j.find(Warning, m.Label(), KindLag, next, "%d entries behind the other members", far)
	}
}

func (j *judge) space(m Member) {
	s := m.Status
	switch used := s.QuotaUsed(); {
	case s.QuotaBytes == 0:
		j.gap(m.Label(), KindQuota, "etcd "+s.Version+
			" tells its quota only in its metrics; allow the scrape, or give --quota-backend-bytes")
	case used >= j.limits.QuotaCritical && !j.opts.NoSpace:
		j.find(Critical, m.Label(), KindQuota, j.roomNext(),
			"%.0f%% of the quota is used (%s of %s)", 100*used, output.Bytes(s.SizeBytes), output.Bytes(s.QuotaBytes))
	case used >= j.limits.QuotaWarning && !j.opts.NoSpace:
		j.find(Warning, m.Label(), KindQuota, j.roomNext(),
			"%.0f%% of the quota is used (%s of %s)", 100*used, output.Bytes(s.SizeBytes), output.Bytes(s.QuotaBytes))
	}
	free := s.SizeBytes - s.InUseBytes
	if s.Fragmented() >= j.limits.Fragmentation && free >= j.limits.FragmentedSize {
		j.find(Warning, m.Label(), KindSpace, "etcdkit defrag-all --dry-run",
			"%.0f%% of the database file holds no data (%s)", 100*s.Fragmented(), output.Bytes(free))
	}
}

// roomNext is what makes room in a quota: where it is used up for good only the
// whole procedure does.
func (j *judge) roomNext() string {
	if len(alarmed(j.facts, alarmNoSpace)) > 0 {
		return recoverNext
	}
	return "etcdkit defrag-all --compact --dry-run"
}

func (j *judge) certs(m Member) {
	for _, c := range m.Certs {
		who, what := m.Label(), fmt.Sprintf("the %s certificate at %s", c.Use, c.URL)
		if c.Use == certClient { // the caller's own, which every URL is shown
			same := c.Subject + c.NotAfter.String()
			if slices.Contains(j.ownCerts, same) {
				continue
			}
			j.ownCerts = append(j.ownCerts, same)
			who, what = "", "the client certificate that is used here"
		}
		left := c.NotAfter.Sub(j.facts.Time)
		next := "renew it (kubeadm: kubeadm certs renew all; k3s: k3s certificate rotate), then restart what uses it"
		switch {
		case left <= 0:
			j.find(Critical, who, KindCerts, next, "%s (%s) expired on %s", what, c.Subject, c.NotAfter.Format(time.DateOnly))
		case left < j.limits.CertExpiry:
			j.find(Warning, who, KindCerts, next, "%s (%s) expires in %d days, on %s", what, c.Subject, int(left/day), c.NotAfter.Format(time.DateOnly))
		}
	}
}

func (j *judge) metrics(m Member) {
	if m.Metrics == nil {
		return
	}
	disk := "on its host, in the filesystem of its data directory: etcdkit disk check DIR"
	j.timing(m, "WAL fsync", m.Metrics.WALFsync, j.limits.Fsync, disk)
	j.timing(m, "backend commit", m.Metrics.BackendCommit, j.limits.Commit, disk)
	if n := m.Metrics.LeaderChanges.Sample; n > 0 {
		j.find(Warning, m.Label(), KindMetrics, "etcdkit health --sample 10s -w json (peerRoundTrips, walFsync: the network or a disk)",
			"the leader changed %.0f times within %s", n, seconds(m.Metrics.SampleSeconds))
	}
	if n := m.Metrics.FailedProposals.Sample; n > 0 {
		j.find(Warning, m.Label(), KindMetrics, "etcdkit endpoint status --cluster",
			"%.0f proposals failed within %s", n, seconds(m.Metrics.SampleSeconds))
	}
	if n := m.Metrics.SlowApplies.Sample; n > 0 {
		j.find(Info, m.Label(), KindMetrics, disk, "%.0f slow applies within %s", n, seconds(m.Metrics.SampleSeconds))
	}
}

func (j *judge) timing(m Member, what string, t *Timing, limit time.Duration, next string) {
	switch {
	case t == nil:
		j.gap(m.Label(), KindMetrics, "no figure for "+what)
	case t.SampleCount < j.limits.SampleCount:
		// A percentile of a few events is an accident, not a measurement.
	case *t.SampleP99Seconds > limit.Seconds():
		j.find(Warning, m.Label(), KindMetrics, next, "%s p99 is %s over %d in the sample, above %s (%s since start over %d)",
			what, seconds(*t.SampleP99Seconds), t.SampleCount, limit, seconds(*t.TotalP99Seconds), t.TotalCount)
	}
}

// membership compares what the member says of itself with the member list
// (etcd-io/etcd#18347).
func (j *judge) membership(m Member) {
	switch {
	case len(j.facts.Members) > 0 && !m.Listed && j.facts.Cluster.Voters > 0:
		j.find(Critical, m.Label(), KindMembers, "check the endpoints: "+m.Endpoint+" serves another cluster, or a removed member",
			"%s answers as member %s, which is not in the member list", m.Endpoint, m.IDHex)
	case m.Status != nil && m.Listed && m.Status.Learner != m.Learner:
		j.find(Warning, m.Label(), KindMembers, "restart the member, then look again",
			"the member list says learner=%v, the member itself %v", m.Learner, m.Status.Learner)
	case m.Listed && m.Learner && m.Status != nil && !m.Life().Alive:
		j.find(Warning, m.Label(), KindLag, "check its log and the network between it and the leader (peer URLs)", "the learner is not alive: %s", m.Life().Evidence)
	case m.Listed && m.Learner:
		j.find(Info, m.Label(), KindMembers, "etcdkit member promote "+m.IDHex+" --wait", "the member is a learner and has no vote")
	}
}

// versions judges each version and how far they are apart.
func (j *judge) versions() {
	minors := map[string][]string{}
	var lowest, highest *semver.Version
	for _, m := range j.facts.Members {
		if m.Status == nil {
			continue
		}
		v, err := semver.NewVersion(m.Status.Version)
		if err != nil {
			j.gap(m.Label(), KindVersion, fmt.Sprintf("version %q: %v", m.Status.Version, err))
			continue
		}
		if why, fixed := knownBad(v); why != "" {
			j.find(Warning, m.Label(), KindVersion, "upgrade to "+fixed+" or newer", "etcd %s: %s", v, why)
		}
		minor := fmt.Sprintf("%d.%d", v.Major, v.Minor)
		minors[minor] = append(minors[minor], m.Label())
		if lowest == nil || v.LessThan(*lowest) {
			lowest = v
		}
		if highest == nil || highest.LessThan(*v) {
			highest = v
		}
	}
	if len(minors) < 2 {
		return
	}
	var parts []string
	for minor, who := range minors {
		parts = append(parts, minor+" on "+strings.Join(who, ", "))
	}
	slices.Sort(parts)
	severity := Warning
	if highest.Major != lowest.Major || highest.Minor > lowest.Minor+1 {
		severity = Critical
	}
	j.find(severity, "", KindVersion, "finish the upgrade or the downgrade", "the members run different minor versions: %s",
		strings.Join(parts, "; "))
}

// knownBad says what is wrong with a patch release, and what repairs it.
func knownBad(v *semver.Version) (why, fixed string) {
	within := func(from, to string) bool {
		return !v.LessThan(*semver.New(from)) && v.LessThan(*semver.New(to))
	}
	switch {
	case within("3.5.0", "3.5.3"):
		return "members can lose consistency after a crash under load (etcd-io/etcd#13766)", "3.5.35"
	case within("3.5.3", "3.5.6"):
		return "a crash during a defragmentation, or authentication, can corrupt data (etcd-io/etcd#14685, #14571)", "3.5.35"
	case within("3.4.0", "3.4.22"):
		return "authentication can corrupt data (etcd-io/etcd#14571)", "3.4.22"
	default:
		return "", ""
	}
}

func seconds(s float64) string { return output.Duration(time.Duration(s * float64(time.Second))) }
