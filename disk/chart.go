package disk

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// The sizes of the drawings, in SVG units.
const (
	chartWidth  = 920.0
	chartHeight = 240.0
	// perOctave is how many bars of the histogram a doubling of time has.
	perOctave = 6
	// harmful is the latency at which a line is drawn: etcd's documented limit.
	harmful = 0.010
)

// bar, tick and mark are drawn at X, Y.
type (
	bar struct {
		X, Y, W, H float64
		Harmful    bool
		Title      string
	}
	tick struct {
		At    float64
		Label string
	}
	mark struct {
		X, Y  float64 // Y is where its label goes
		Label string
		Class string
	}
	dot struct {
		X, Y    float64
		Harmful bool
		Title   string
	}
)

type histogramChart struct {
	Bars  []bar
	Ticks []tick
	Marks []mark
}

type seriesChart struct {
	Max     []dot
	Means   []string // a line for each round
	Breaks  []mark   // where a round begins
	Ticks   []tick   // of latency
	LimitY  float64
	Seconds float64
}

// scale maps a latency to a place on a logarithmic axis.
type scale struct{ low, high, length float64 }

// scaleOf returns a scale of whole decades that holds all buckets.
func scaleOf(buckets []Bucket, length float64) scale {
	low := math.Floor(math.Log10(max(buckets[0].FromSeconds, 1e-6)))
	high := math.Ceil(math.Log10(max(buckets[len(buckets)-1].ToSeconds, 1e-6)))
	return scale{low, max(high, low+1), length}
}

func (s scale) at(seconds float64) float64 {
	share := (math.Log10(max(seconds, 1e-9)) - s.low) / (s.high - s.low)
	return math.Round(10*s.length*min(max(share, 0), 1)) / 10
}

func (s scale) ticks() []tick {
	var ticks []tick
	for e := s.low; e <= s.high; e++ {
		ticks = append(ticks, tick{s.at(math.Pow(10, e)), decade(int(e))})
	}
	return ticks
}

// decade words a power of ten seconds.
func decade(e int) string {
	switch {
	case e >= 0:
		return fmt.Sprintf("%.0f s", math.Pow10(e))
	case e >= -3:
		return fmt.Sprintf("%.0f ms", math.Pow10(e+3))
	}
	return fmt.Sprintf("%.0f µs", math.Pow10(e+6))
}

// histogramChart draws the syncs of all rounds over a logarithmic time axis.
func (r *Report) histogramChart() *histogramChart {
	if len(r.Histogram) == 0 {
		return nil
	}
	s := scaleOf(r.Histogram, chartWidth)
	var largest, total int64
	counts := map[int]int64{}
	for _, b := range r.Histogram {
		n := int(math.Floor(math.Log2(max(b.FromSeconds*1e9, 1)) * perOctave))
		counts[n] += b.Count
		largest, total = max(largest, counts[n]), total+b.Count
	}
	c := &histogramChart{Ticks: s.ticks()}
	for _, n := range slices.Sorted(maps.Keys(counts)) {
		count := counts[n]
		from, to := math.Exp2(float64(n)/perOctave)/1e9, math.Exp2(float64(n+1)/perOctave)/1e9
		x, height := s.at(from), max(1, chartHeight*0.85*float64(count)/float64(largest))
		c.Bars = append(c.Bars, bar{
			X: x, Y: chartHeight - height, W: max(s.at(to)-x-1, 0.5), H: height, Harmful: from >= harmful,
			Title: fmt.Sprintf("%s to %s: %d syncs, %.2f %%", FormatSeconds(from), FormatSeconds(to), count, 100*float64(count)/float64(total)),
		})
	}
	f := r.Fsync
	for i, m := range []struct {
		name  string
		value float64
	}{{"p50", f.P50Seconds}, {"p99", f.P99Seconds}, {"p99.9", f.P999Seconds}} {
		c.Marks = append(c.Marks, mark{X: s.at(m.value), Y: 12 + 14*float64(i), Label: m.name + " " + FormatSeconds(m.value), Class: "percentile"})
	}
	if x := s.at(harmful); x > 0 && x < chartWidth {
		c.Marks = append(c.Marks, mark{X: x, Y: 12 + 14*3, Label: "etcd's limit for p99, 10 ms", Class: "limit"})
	}
	return c
}

// seriesChart draws the mean and the slowest sync of every slot of time, round
// after round.
func (r *Report) seriesChart() *seriesChart {
	if len(r.Histogram) == 0 || len(r.Rounds) == 0 || len(r.Rounds[0].Series) == 0 {
		return nil
	}
	total := 0.0
	for _, round := range r.Rounds {
		total += round.TookSeconds
	}
	s := scaleOf(r.Histogram, chartHeight)
	c := &seriesChart{Seconds: total, LimitY: chartHeight - s.at(harmful)}
	for _, t := range s.ticks() {
		c.Ticks = append(c.Ticks, tick{chartHeight - t.At, t.Label})
	}
	begin := 0.0
	for i, round := range r.Rounds {
		x := func(at float64) float64 { return math.Round(10*chartWidth*(begin+at)/max(total, 1e-9)) / 10 }
		c.Breaks = append(c.Breaks, mark{X: x(0), Label: fmt.Sprintf("round %d", i+1)})
		var line []string
		for _, p := range round.Series {
			line = append(line, fmt.Sprintf("%.1f,%.1f", x(p.AtSeconds), chartHeight-s.at(p.MeanSeconds)))
			c.Max = append(c.Max, dot{
				X: x(p.AtSeconds), Y: chartHeight - s.at(p.MaxSeconds), Harmful: p.MaxSeconds >= harmful,
				Title: fmt.Sprintf("round %d, %.1f s: %d syncs, mean %s, slowest %s", i+1, p.AtSeconds, p.Count, FormatSeconds(p.MeanSeconds), FormatSeconds(p.MaxSeconds)),
			})
		}
		c.Means = append(c.Means, strings.Join(line, " "))
		begin += round.TookSeconds
	}
	return c
}
