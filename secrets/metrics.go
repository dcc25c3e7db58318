package secrets

import (
	"time"

	"github.com/etcdkit/etcdkit/internal/metricsfile"
)

// MetricLastSuccess is the gauge that a run which was cut short leaves as the
// last whole one wrote it.
const MetricLastSuccess = "etcdkit_secrets_last_success_timestamp_seconds"

// Metrics returns a report as gauges. r is nil for a scan that failed.
func Metrics(r *Report, failOn FailOn, now time.Time) []metricsfile.Gauge {
	at := float64(now.Unix())
	if r == nil {
		return []metricsfile.Gauge{
			metricsfile.One("etcdkit_secrets_success", "Whether everything could be read.", 0),
			metricsfile.One("etcdkit_secrets_last_run_timestamp_seconds", "When the last scan ended.", at),
		}
	}
	objects := metricsfile.Gauge{Name: "etcdkit_secrets_objects", Help: "Stored versions of objects, by place and state."}
	for _, c := range r.Summary {
		objects.Samples = append(objects.Samples, metricsfile.Sample{Value: float64(c.Count), Labels: map[string]string{
			"resource": c.Resource, "place": string(c.Place), "state": string(c.State), "provider": c.Provider, "key": c.Key,
		}})
	}
	gauges := []metricsfile.Gauge{
		metricsfile.One("etcdkit_secrets_hits", "Stored versions in a state that must not be.", float64(failOn.Hits(r))),
		metricsfile.One("etcdkit_secrets_unopened", "Stored versions that the keys do not open.", float64(r.NotOpened+r.CannotTell)),
		metricsfile.One("etcdkit_secrets_last_run_timestamp_seconds", "When the last scan ended.", at),
	}
	if len(objects.Samples) > 0 {
		gauges = append(gauges, objects)
	}
	leaks := metricsfile.Gauge{Name: "etcdkit_secrets_credentials", Help: "Stored versions that hold what looks like a credential, by rule."}
	for _, c := range r.Credentials {
		leaks.Samples = append(leaks.Samples, metricsfile.Sample{Value: float64(c.Count), Labels: map[string]string{
			"resource": c.Resource, "place": string(c.Place), "rule": c.Rule,
		}})
	}
	if len(leaks.Samples) > 0 {
		gauges = append(gauges, leaks)
	}
	success := 1.0
	for _, p := range r.Places {
		if !p.Read {
			success = 0
		}
	}
	if success == 1 {
		gauges = append(gauges, metricsfile.One(MetricLastSuccess, "When a scan last read everything.", at))
	}
	return append(gauges, metricsfile.One("etcdkit_secrets_success", "Whether everything could be read.", success))
}
