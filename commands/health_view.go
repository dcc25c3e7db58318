package commands

import (
	"fmt"
	"io"
	"strings"

	"github.com/etcdkit/etcdkit/health"
	"github.com/etcdkit/etcdkit/internal/metricsfile"
	"github.com/etcdkit/etcdkit/internal/output"
)

// healthView shows a report: the verdict first, then what is wrong and what to
// do, then the members.
func healthView(r health.Report) output.Result {
	return output.Result{
		JSON:   r,
		Simple: func(w io.Writer) { healthWords(w, r) },
		Table: func() ([]string, [][]string) {
			header := []string{"member", "endpoint", "verdict of it", "version", "role", "db size", "in use", "quota used", "reads", "lag"}
			var rows [][]string
			for _, m := range r.Members {
				rows = append(rows, []string{m.Label(), m.Endpoint, worstOf(r, m), version(m), role(r, m), size(m), inUse(m), quotaUsed(m), reads(m), lag(m)})
			}
			return header, rows
		},
	}
}

func healthWords(w io.Writer, r health.Report) {
	c := r.Cluster
	seen := "the members could not be seen"
	asked := len(r.Members)
	for _, m := range r.Members {
		if m.Error == health.NotAsked {
			asked--
		}
	}
	switch {
	case asked < len(r.Members): // what the others bear is not known
		seen = fmt.Sprintf("cluster %s, %d voters, quorum is %d; only %d of %d members were asked", c.IDHex, c.Voters, c.Quorum, asked, len(r.Members))
	case c.Voters > 0:
		seen = fmt.Sprintf("cluster %s, %d of %d voters alive, quorum is %d, %d more may fail", c.IDHex, c.Alive, c.Voters, c.Quorum, c.CanLose)
	}
	output.Text(w, 0, strings.ToUpper(string(r.Verdict))+": "+seen)
	if u := r.Upgrade; u != nil {
		output.Text(w, 0, map[bool]string{true: "READY", false: "NOT READY"}[u.Ready]+" for an upgrade to "+u.To)
	}
	for _, p := range r.Problems {
		fmt.Fprintln(w)
		output.Text(w, 9, fmt.Sprintf("%-8s %s", p.Severity, strings.TrimPrefix(p.Member+": "+p.Evidence, ": ")))
		output.Text(w, 15, "         next: "+p.Next)
	}
	fmt.Fprintln(w)
	var rows [][]string
	for _, m := range r.Members {
		rows = append(rows, []string{
			m.Label(), m.Endpoint, version(m), role(r, m),
			size(m), inUse(m), quotaUsed(m), reads(m), lag(m), fsync(m), commit(m),
		})
	}
	output.Columns(w, []string{"member", "endpoint", "version", "role", "db size", "in use", "quota used", "reads", "lag", "fsync p99", "commit p99"}, rows)
	if h := c.Hash; h != nil {
		fmt.Fprintf(w, "\nhashes: %s\n", hashWords(*h))
	}
	if len(r.Gaps) > 0 {
		fmt.Fprintln(w, "\nnot seen:")
	}
	for _, g := range r.Gaps {
		required := ""
		if g.Required {
			required = " (required)"
		}
		output.Text(w, 4, fmt.Sprintf("  %s%s: %s", strings.TrimPrefix(g.Member+": "+string(g.Check), ": "), required, g.Reason))
	}
}

func hashWords(h health.Hashes) string {
	if h.Result == health.HashesSingle {
		return "single member, nothing to compare"
	}
	return fmt.Sprintf("%s at revision %d", h.Result, h.Revision)
}

func worstOf(r health.Report, m health.Member) string {
	if m.Error == health.NotAsked {
		return "not asked"
	}
	if !m.Reachable {
		return "no answer"
	}
	for _, p := range r.Problems {
		if p.Member == m.Label() {
			return string(p.Severity)
		}
	}
	return "ok"
}

func version(m health.Member) string {
	if m.Status == nil {
		return "-"
	}
	return m.Status.Version
}

func role(r health.Report, m health.Member) string {
	switch {
	case m.Error == health.NotAsked:
		return "not asked"
	case !m.Reachable:
		return "no answer"
	case m.Learner:
		return "learner"
	case r.Cluster.Leader == m.Label():
		return "leader"
	default:
		return "follower"
	}
}

func size(m health.Member) string {
	if m.Status == nil {
		return "-"
	}
	return output.Bytes(m.Status.SizeBytes)
}

func inUse(m health.Member) string {
	if m.Status == nil {
		return "-"
	}
	return output.Bytes(m.Status.InUseBytes)
}

func quotaUsed(m health.Member) string {
	switch {
	case m.Status == nil || m.Status.QuotaBytes == 0:
		return "-"
	case m.Status.QuotaBytes < 0:
		return "no quota"
	default:
		return fmt.Sprintf("%.1f%%", 100*m.Status.QuotaUsed())
	}
}

func reads(m health.Member) string {
	switch {
	case m.Reads == nil:
		return "-"
	case m.Reads.Count == 0:
		return "failed"
	default:
		return fmt.Sprintf("%.1f ms", 1000*m.Reads.MedianSeconds)
	}
}

func lag(m health.Member) string {
	if m.Status == nil {
		return "-"
	}
	return fmt.Sprint(m.Status.Index - min(m.Status.Index, m.Status.Applied))
}

func fsync(m health.Member) string {
	if m.Metrics == nil {
		return "-"
	}
	return percentile(m.Metrics.WALFsync)
}

func commit(m health.Member) string {
	if m.Metrics == nil {
		return "-"
	}
	return percentile(m.Metrics.BackendCommit)
}

// percentile shows the sample and, in brackets, what there is since the server
// started, each with the number of events behind it.
func percentile(t *health.Timing) string {
	switch {
	case t == nil || t.TotalP99Seconds == nil:
		return "-"
	case t.SampleP99Seconds == nil:
		return fmt.Sprintf("- (%.1f ms of %d)", 1000**t.TotalP99Seconds, t.TotalCount)
	default:
		return fmt.Sprintf("%.1f ms of %d (%.1f ms of %d)", 1000**t.SampleP99Seconds, t.SampleCount, 1000**t.TotalP99Seconds, t.TotalCount)
	}
}

// healthMetrics are the gauges of a report.
func healthMetrics(r health.Report) []metricsfile.Gauge {
	verdicts := metricsfile.Gauge{Name: "etcdkit_health_verdict", Help: "Whether this is the cluster's verdict."}
	for _, v := range []health.Verdict{health.Healthy, health.Degraded, health.Unhealthy, health.Unknown} {
		is := 0.0
		if r.Verdict == v {
			is = 1
		}
		verdicts.Samples = append(verdicts.Samples, metricsfile.Sample{Labels: map[string]string{"verdict": string(v)}, Value: is})
	}
	problems := metricsfile.Gauge{Name: "etcdkit_health_problems", Help: "Problems found, by severity."}
	for _, s := range []health.Severity{health.Critical, health.Warning, health.Info} {
		n := 0
		for _, p := range r.Problems {
			if p.Severity == s {
				n++
			}
		}
		problems.Samples = append(problems.Samples, metricsfile.Sample{Labels: map[string]string{"severity": string(s)}, Value: float64(n)})
	}
	return []metricsfile.Gauge{
		verdicts, problems,
		metricsfile.One("etcdkit_health_can_lose", "Voters that may still fail.", float64(r.Cluster.CanLose)),
		metricsfile.One("etcdkit_health_checked_timestamp_seconds", "When the cluster was looked at.", float64(r.Time.Unix())),
	}
}
