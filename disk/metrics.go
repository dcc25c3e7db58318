package disk

import (
	"errors"
	"fmt"
	"io"
	"math"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// EtcdMetrics are the disk times that an etcd has measured itself since it started.
type EtcdMetrics struct {
	URL           string     `json:"url"`
	WALFsync      *Durations `json:"walFsync,omitempty"`
	BackendCommit *Durations `json:"backendCommit,omitempty"`
}

// Durations is a Prometheus histogram of times.
type Durations struct {
	Count       uint64  `json:"count"`
	MeanSeconds float64 `json:"meanSeconds"`
	// P99FromSeconds and P99ToSeconds are the bounds of the bucket that holds
	// the p99. It is open above, and P99ToSeconds 0, where it is the last.
	P99FromSeconds float64           `json:"p99FromSeconds"`
	P99ToSeconds   float64           `json:"p99ToSeconds"`
	Buckets        []DurationsBucket `json:"buckets"`
}

// DurationsBucket counts the times up to a bound, as Prometheus does.
type DurationsBucket struct {
	ToSeconds float64 `json:"toSeconds"` // 0 where there is no bound
	Count     uint64  `json:"count"`
}

// maxMetrics bounds what is read of an answer; etcd's has some 100 kB.
const maxMetrics = 16 << 20

// ReadMetrics reads the answer of an etcd's /metrics.
func ReadMetrics(r io.Reader) (*EtcdMetrics, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(io.LimitReader(r, maxMetrics))
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	m := &EtcdMetrics{
		WALFsync:      durationsOf(families["etcd_disk_wal_fsync_duration_seconds"]),
		BackendCommit: durationsOf(families["etcd_disk_backend_commit_duration_seconds"]),
	}
	if m.WALFsync == nil {
		return nil, errors.New("read metrics: no etcd_disk_wal_fsync_duration_seconds in them")
	}
	return m, nil
}

func durationsOf(family *dto.MetricFamily) *Durations {
	if len(family.GetMetric()) == 0 {
		return nil
	}
	h := family.GetMetric()[0].GetHistogram()
	if h == nil {
		return nil
	}
	d := &Durations{Count: h.GetSampleCount()}
	if d.Count > 0 {
		d.MeanSeconds = finite(h.GetSampleSum() / float64(d.Count))
	}
	var below uint64
	found := false
	for _, b := range h.GetBucket() {
		to := finite(b.GetUpperBound())
		count := b.GetCumulativeCount()
		d.Buckets = append(d.Buckets, DurationsBucket{ToSeconds: to, Count: max(count, below) - below})
		if !found && float64(count) >= 0.99*float64(d.Count) {
			found, d.P99ToSeconds = true, to
		} else if !found {
			d.P99FromSeconds = to
		}
		below = max(count, below)
	}
	return d
}

// finite returns 0 for what JSON cannot hold.
func finite(v float64) float64 {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return 0
	}
	return v
}

// String words the histogram: "mean 1.20 ms, p99 between 2.00 ms and 4.00 ms, of 12345".
func (d Durations) String() string {
	p99 := fmt.Sprintf("p99 between %s and %s", FormatSeconds(d.P99FromSeconds), FormatSeconds(d.P99ToSeconds))
	switch {
	case d.P99ToSeconds == 0:
		p99 = "p99 above " + FormatSeconds(d.P99FromSeconds)
	case d.P99FromSeconds == 0:
		p99 = "p99 below " + FormatSeconds(d.P99ToSeconds)
	}
	return fmt.Sprintf("mean %s, %s, of %d", FormatSeconds(d.MeanSeconds), p99, d.Count)
}
