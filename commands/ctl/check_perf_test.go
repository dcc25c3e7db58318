package ctl

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"go.etcd.io/etcd/pkg/v3/report"
)

// statsOf is what the load's report says of writes that took so long.
func statsOf(took []float64, clients int) report.Stats {
	s := report.Stats{Slowest: slices.Max(took)}
	for _, t := range took {
		s.Average += t / float64(len(took))
	}
	for _, t := range took {
		s.Stddev += (t - s.Average) * (t - s.Average) / float64(len(took))
	}
	s.Stddev = math.Sqrt(s.Stddev)
	s.RPS = float64(clients) / s.Average
	return s
}

// A cluster on which every write takes longer, by whatever, never passes where
// the faster one fails.
func TestASlowerClusterNeverGetsABetterVerdict(t *testing.T) {
	passes := func(s report.Stats) bool {
		p := newPerfResult(s, 150, cleaning{})
		return p.Pass && p.quick()
	}
	random := rand.New(rand.NewPCG(1, 2))
	good := 0
	for range 20_000 {
		fast, slow := make([]float64, 40), make([]float64, 40)
		base, spread := random.ExpFloat64()*0.1, random.ExpFloat64()*0.2
		level := random.Float64() * 0.5
		for i := range fast {
			fast[i] = base + random.Float64()*spread
			slow[i] = fast[i] + random.Float64()*0.1
			if random.IntN(2) == 0 {
				slow[i] = max(fast[i], level) // evenly slow, which a standard deviation takes for good
			}
		}
		a, b := statsOf(fast, 50), statsOf(slow, 50)
		b.RPS = min(a.RPS, b.RPS)
		if passes(b) && !passes(a) {
			t.Fatalf("the slower passes: %+v, the faster does not: %+v", b, a)
		}
		if passes(a) {
			good++
		}
	}
	if good == 0 || good == 20_000 {
		t.Errorf("%d of 20000 pass, so the test compares nothing", good)
	}
}

func TestAClusterThatTookNoWriteFails(t *testing.T) {
	p := newPerfResult(report.Stats{RPS: math.NaN(), Stddev: math.NaN(), Average: math.NaN()}, 150, cleaning{})
	if p.Pass || math.IsNaN(p.DeviationSeconds) || math.IsNaN(p.RMSSeconds) {
		t.Errorf("got %+v, want a failure in numbers that JSON can show", p)
	}
}
