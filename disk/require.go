package disk

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// Metric is a number that a disk can be held to.
type Metric string

// The metrics. Times are of one fdatasync.
const (
	P50       Metric = "p50"
	P90       Metric = "p90"
	P95       Metric = "p95"
	P99       Metric = "p99"
	P999      Metric = "p99.9"
	Max       Metric = "max"
	Mean      Metric = "mean"
	IOPS      Metric = "iops"  // writes with their sync in a second
	WriteRate Metric = "write" // bytes written in a second, in large blocks
	ReadRate  Metric = "read"  // bytes read back in a second
)

// Requirement is a limit: latencies must be below it, rates must reach it.
type Requirement struct {
	Metric Metric  `json:"metric"`
	Limit  float64 `json:"limit"` // seconds, operations or bytes in a second
}

// Requirements are limits that must all be met.
type Requirements []Requirement

// ParseRequirements reads "p99=10ms,iops=500,write=100MB".
func ParseRequirements(s string) (Requirements, error) {
	var all Requirements
	for item := range strings.SplitSeq(s, ",") {
		name, limit, ok := strings.Cut(strings.TrimSpace(item), "=")
		if !ok {
			return nil, fmt.Errorf("%w: %q is not of the form p99=10ms", ErrOptions, item)
		}
		metric, ok := metricNamed(strings.ToLower(strings.TrimSpace(name)))
		if !ok {
			return nil, fmt.Errorf("%w: no number is called %q; there are %s", ErrOptions, name, metricNames)
		}
		value, err := metric.parse(strings.TrimSpace(limit))
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrOptions, metric, err)
		}
		all = append(all, Requirement{metric, value})
	}
	return all, nil
}

// needBandwidth reports whether a limit is one of bulk data.
func (r Requirements) needBandwidth() bool {
	return slices.ContainsFunc(r, func(want Requirement) bool { return want.Metric.isRate() })
}

const metricNames = "p50, p90, p95, p99, p99.9, max, mean, iops, write, read"

func metricNamed(name string) (Metric, bool) {
	if name == "p999" {
		return P999, true
	}
	for known := range strings.SplitSeq(metricNames, ", ") {
		if name == known {
			return Metric(name), true
		}
	}
	return "", false
}

func (m Metric) isLatency() bool { return m != IOPS && !m.isRate() }
func (m Metric) isRate() bool    { return m == WriteRate || m == ReadRate }

func (m Metric) parse(s string) (float64, error) {
	switch {
	case m.isLatency():
		d, err := time.ParseDuration(s)
		if err != nil || d <= 0 {
			return 0, fmt.Errorf("%q is no time such as 10ms", s)
		}
		return d.Seconds(), nil
	case m.isRate():
		n, err := humanize.ParseBytes(strings.TrimSuffix(s, "/s"))
		if err != nil || n == 0 {
			return 0, fmt.Errorf("%q is no rate such as 100MB", s)
		}
		return float64(n), nil
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(n > 0) || math.IsInf(n, 0) {
		return 0, fmt.Errorf("%q is no number such as 500", s)
	}
	return n, nil
}

// Format words a value of the metric: "3.12 ms", "1,234", "98 MB/s".
func (m Metric) Format(v float64) string {
	switch {
	case m.isLatency():
		return FormatSeconds(v)
	case m.isRate():
		return humanize.Bytes(uint64(v)) + "/s"
	}
	return humanize.Commaf(math.Round(v))
}

// FormatSeconds words a time with three significant digits.
func FormatSeconds(s float64) string {
	switch {
	case s >= 1:
		return digits3(s) + " s"
	case s >= 1e-3:
		return digits3(s*1e3) + " ms"
	}
	return digits3(s*1e6) + " µs"
}

// bytesOf words a size.
func bytesOf(n int64) string { return humanize.Bytes(uint64(max(n, 0))) }

func digits3(v float64) string {
	switch {
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

func (r Requirement) metBy(got float64) bool {
	if r.Metric.isLatency() {
		return got < r.Limit
	}
	return got >= r.Limit
}

// isWorse reports whether one value is farther from meeting the limit.
func (r Requirement) isWorse(got, other float64) bool {
	if r.Metric.isLatency() {
		return got > other
	}
	return got < other
}

func (r Requirement) wording() string {
	if r.Metric.isLatency() {
		return "below " + r.Metric.Format(r.Limit)
	}
	return "at least " + r.Metric.Format(r.Limit)
}

// value returns what was measured of a metric.
func (r *Report) value(m Metric) (float64, bool) {
	synced := r.Fsync.Count > 0
	switch m {
	case P50:
		return r.Fsync.P50Seconds, synced
	case P90:
		return r.Fsync.P90Seconds, synced
	case P95:
		return r.Fsync.P95Seconds, synced
	case P99:
		return r.Fsync.P99Seconds, synced
	case P999:
		return r.Fsync.P999Seconds, synced
	case Max:
		return r.Fsync.MaxSeconds, synced
	case Mean:
		return r.Fsync.MeanSeconds, synced
	case IOPS:
		return r.IOPS, synced
	case WriteRate:
		if r.Bandwidth != nil {
			return r.Bandwidth.WriteBytesPerSecond, true
		}
	case ReadRate:
		if r.Bandwidth != nil {
			return r.Bandwidth.ReadBytesPerSecond, r.Bandwidth.ReadBytesPerSecond > 0
		}
	}
	return 0, false
}
