package disk

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	// longest is more than a call can take whose run is bounded.
	longest = int64(48 * time.Hour)
	digits  = 3 // 0.1 % precision
	// shownDigits is the precision of the buckets in a report: 1 %, as fine as
	// fio's and no larger than needed.
	shownDigits = 2
)

// Latency is the distribution of the time that calls took.
type Latency struct {
	Count         int64   `json:"count"`
	MinSeconds    float64 `json:"minSeconds"`
	MeanSeconds   float64 `json:"meanSeconds"`
	StddevSeconds float64 `json:"stddevSeconds"`
	P50Seconds    float64 `json:"p50Seconds"`
	P90Seconds    float64 `json:"p90Seconds"`
	P95Seconds    float64 `json:"p95Seconds"`
	P99Seconds    float64 `json:"p99Seconds"`
	P999Seconds   float64 `json:"p999Seconds"`
	MaxSeconds    float64 `json:"maxSeconds"`
}

// Bucket counts the calls that took from From up to To seconds.
type Bucket struct {
	FromSeconds float64 `json:"fromSeconds"`
	ToSeconds   float64 `json:"toSeconds"`
	Count       int64   `json:"count"`
}

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, longest, digits) }

// latencyOf sums a histogram up.
func latencyOf(h *hdrhistogram.Histogram) Latency {
	if h.TotalCount() == 0 {
		return Latency{}
	}
	at := func(percentile float64) float64 { return seconds(h.ValueAtPercentile(percentile)) }
	return Latency{
		Count:         h.TotalCount(),
		MinSeconds:    seconds(h.Min()),
		MeanSeconds:   h.Mean() / 1e9,
		StddevSeconds: h.StdDev() / 1e9,
		P50Seconds:    at(50),
		P90Seconds:    at(90),
		P95Seconds:    at(95),
		P99Seconds:    at(99),
		P999Seconds:   at(99.9),
		MaxSeconds:    seconds(h.Max()),
	}
}

// bucketsOf returns the buckets of a histogram that are not empty.
func bucketsOf(h *hdrhistogram.Histogram) []Bucket {
	var buckets []Bucket
	shown := hdrhistogram.New(1, longest, shownDigits)
	shown.Merge(h)
	for _, bar := range shown.Distribution() {
		if bar.Count > 0 {
			buckets = append(buckets, Bucket{FromSeconds: seconds(bar.From), ToSeconds: seconds(bar.To + 1), Count: bar.Count})
		}
	}
	return buckets
}

// Coarse sums buckets up to few that a person can look at: 1, 2, 5, 10 and so
// on microseconds, from the first that is not empty to the last.
func Coarse(fine []Bucket) []Bucket {
	var rows []Bucket
	edge := edges()
	from, to := 0.0, edge()
	for _, b := range fine {
		for b.FromSeconds >= to {
			if len(rows) > 0 {
				rows = append(rows, Bucket{FromSeconds: to})
			}
			from, to = to, edge()
			if len(rows) > 0 {
				rows[len(rows)-1].ToSeconds = to
			}
		}
		if len(rows) == 0 {
			rows = append(rows, Bucket{FromSeconds: from, ToSeconds: to})
		}
		rows[len(rows)-1].Count += b.Count
	}
	return rows
}

// edges returns a source of 1, 2, 5, 10 and so on microseconds, in seconds.
func edges() func() float64 {
	n, unit := 0, int64(1000)
	return func() float64 {
		edge := []int64{1, 2, 5}[n%3] * unit
		if n++; n%3 == 0 {
			unit *= 10
		}
		return seconds(edge)
	}
}

func seconds(nanoseconds int64) float64 { return float64(nanoseconds) / 1e9 }
