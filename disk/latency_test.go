package disk

import (
	"math"
	"slices"
	"testing"
	"time"
)

func TestLatencyOf(t *testing.T) {
	h := newHistogram()
	for i := range int64(1000) {
		if err := h.RecordValue((i + 1) * 1000); err != nil { // 1 to 1000 µs
			t.Fatal(err)
		}
	}
	got := latencyOf(h)
	near := func(what string, got, want float64) {
		if math.Abs(got-want) > want*0.002 {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	near("min", got.MinSeconds, 1e-6)
	near("mean", got.MeanSeconds, 500.5e-6)
	near("p50", got.P50Seconds, 500e-6)
	near("p90", got.P90Seconds, 900e-6)
	near("p99", got.P99Seconds, 990e-6)
	near("p99.9", got.P999Seconds, 999e-6)
	near("max", got.MaxSeconds, 1000e-6)
	near("stddev", got.StddevSeconds, 288.7e-6)
	if latencyOf(newHistogram()) != (Latency{}) {
		t.Error("a histogram of nothing has numbers")
	}
}

func TestCoarse(t *testing.T) {
	const µs, ms = 1e-6, 1e-3
	fine := []Bucket{{180 * µs, 181 * µs, 3}, {199 * µs, 200 * µs, 1}, {200 * µs, 201 * µs, 5}, {3 * ms, 3.1 * ms, 2}}
	want := []Bucket{{100 * µs, 200 * µs, 4}, {200 * µs, 500 * µs, 5}, {500 * µs, 1 * ms, 0}, {1 * ms, 2 * ms, 0}, {2 * ms, 5 * ms, 2}}
	if got := Coarse(fine); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTheSeriesCountsEverySync(t *testing.T) {
	start := time.Now()
	r := newRecorder(time.Minute)
	r.start = start
	for _, at := range []time.Duration{10, 50, 250, 260} { // ms
		end := start.Add(at * time.Millisecond)
		r.add(end.Add(-2*time.Millisecond), end.Add(-time.Millisecond), end)
	}
	got, _ := merge([]*recorder{r}, 1000, false)
	want := []Point{{0, 2, 0.001, 0.001}, {0.2, 2, 0.001, 0.001}}
	if !slices.Equal(got.Series, want) || got.Fsync.Count != 4 || math.Abs(got.IOPS-4/0.26) > 1e-6 {
		t.Errorf("got %+v, want the series %v and 4 writes in 0.26 s", got, want)
	}
}
