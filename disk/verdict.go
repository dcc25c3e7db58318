package disk

import (
	"fmt"
	"math"
	"strings"
)

// Verdict is the answer of a measurement.
type Verdict string

// The verdicts.
const (
	OK   Verdict = "ok"
	Slow Verdict = "slow"
)

// Class is the size of cluster that a disk carries.
type Class string

// The classes, from none to the largest.
const (
	None    Class = "none"    // below etcd's minimum
	Minimum Class = "minimum" // etcd's documented minimum, and no more
	Small   Class = "small"
	Medium  Class = "medium"
	Large   Class = "large"
	XLarge  Class = "xlarge"
	// Unknown is the class where the latency of syncs was not measured.
	Unknown Class = "unknown"
)

// Source says where a limit comes from.
type Source string

// The sources.
const (
	Documented Source = "documented" // etcd's documentation says so
	Derived    Source = "derived"    // ours: sequential IOPS a tenth of the concurrent IOPS of etcd's example configurations
	Required   Source = "required"   // asked for
)

// Judgement is what the numbers of a measurement mean.
type Judgement struct {
	Verdict Verdict `json:"verdict"`
	Class   Class   `json:"class"`
	// Checks are the limits that decided the verdict.
	Checks []Outcome `json:"checks"`
	// Borderline are limits that the quoted round met and another round did
	// not, with the worst of the rounds. They do not change the verdict.
	Borderline []Outcome `json:"borderline,omitempty"`
	// Next is the class above, and Blockers what this disk lacks for it.
	Next     Class     `json:"nextClass,omitempty"`
	Blockers []Outcome `json:"blockers,omitempty"`
	// LeastElectionTimeout is the smallest election timeout that survives the
	// slowest sync seen, as far as the disk is concerned.
	LeastElectionTimeout float64 `json:"leastElectionTimeoutSeconds,omitempty"`
}

// Outcome is one limit and what was measured against it.
type Outcome struct {
	Requirement
	Got    float64 `json:"got"`
	OK     bool    `json:"ok"`
	Source Source  `json:"source"`
}

// String words an outcome: "p99 3.1 ms, wanted below 10 ms".
func (o Outcome) String() string {
	return fmt.Sprintf("%s %s, wanted %s", o.Metric, o.Metric.Format(o.Got), o.Requirement.wording())
}

// documented is etcd's minimum: https://etcd.io/docs/v3.6/op-guide/hardware/
// and the FAQ's limit for the sync of the log.
func documented() Requirements {
	return Requirements{{P99, 0.010}, {IOPS, 50}, {WriteRate, 10e6}}
}

// classes returns the classes above the minimum, each with its limits. All
// take the documented latency too.
func classes() []struct {
	Class
	needs Requirements
} {
	return []struct {
		Class
		needs Requirements
	}{
		{Small, Requirements{{IOPS, 150}, {WriteRate, 25e6}}},
		{Medium, Requirements{{IOPS, 450}, {WriteRate, 75e6}}},
		{Large, Requirements{{IOPS, 750}, {WriteRate, 125e6}}},
		{XLarge, Requirements{{IOPS, 1500}, {WriteRate, 250e6}}},
	}
}

// fewest is the number of syncs below which a p99 is only the maximum.
const fewest = 100

// judge fills in the judgement. What decides is required, or etcd's minimum
// when nothing is.
func (r *Report) judge(required Requirements) error {
	if r.Pattern.syncs() && r.Fsync.Count < fewest {
		return fmt.Errorf("%w: %d syncs are too few to judge by, %d are needed", ErrCannotMeasure, r.Fsync.Count, fewest)
	}
	minimum := r.hold(documented(), Documented)
	r.Checks, r.Class = minimum, Unknown
	if r.Pattern.syncs() {
		r.classify(minimum)
		r.LeastElectionTimeout = electionTimeout(r.slowest())
	}
	if len(required) > 0 {
		r.Checks = r.hold(required, Required)
		if len(r.Checks) < len(required) {
			return fmt.Errorf("%w: %s is required, and pattern %s does not measure it", ErrCannotMeasure, r.missing(required), r.Pattern)
		}
	}
	r.Verdict, r.Borderline = OK, r.borderline()
	if bad := failed(r.Checks); len(bad) > 0 {
		r.Verdict = Slow
		texts := make([]string, len(bad))
		for i, o := range bad {
			texts[i] = o.String()
		}
		return fmt.Errorf("%w: %s", ErrTooSlow, strings.Join(texts, "; "))
	}
	return nil
}

// classify finds the class. It goes up step by step, and stops at the first
// that fails, so that a larger class never passes where a smaller one does not.
func (r *Report) classify(minimum []Outcome) {
	if !passed(minimum) {
		r.Class, r.Next, r.Blockers = None, Minimum, failed(minimum)
		return
	}
	r.Class = Minimum
	for _, c := range classes() {
		outcomes := r.hold(c.needs, Derived)
		if !passed(outcomes) {
			r.Next, r.Blockers = c.Class, failed(outcomes)
			return
		}
		r.Class = c.Class
	}
}

// hold compares what was measured with limits; what was not measured is left out.
func (r *Report) hold(limits Requirements, source Source) []Outcome {
	outcomes := []Outcome{}
	for _, want := range limits {
		if got, ok := r.value(want.Metric); ok {
			outcomes = append(outcomes, Outcome{Requirement: want, Got: got, OK: want.metBy(got), Source: source})
		}
	}
	return outcomes
}

// borderline returns the limits that another round than the quoted one missed.
func (r *Report) borderline() []Outcome {
	var all []Outcome
	for _, c := range r.Checks {
		worst := c
		for _, round := range r.Rounds {
			one := Report{Fsync: round.Fsync, IOPS: round.IOPS, Bandwidth: round.Bandwidth}
			got, ok := one.value(c.Metric)
			if ok && !c.metBy(got) && (worst.OK || c.isWorse(got, worst.Got)) {
				worst.Got, worst.OK = got, false
			}
		}
		if c.OK && !worst.OK {
			all = append(all, worst)
		}
	}
	return all
}

func (r *Report) missing(limits Requirements) Metric {
	for _, want := range limits {
		if _, ok := r.value(want.Metric); !ok {
			return want.Metric
		}
	}
	return ""
}

func passed(outcomes []Outcome) bool { return len(failed(outcomes)) == 0 }

func failed(outcomes []Outcome) []Outcome {
	var bad []Outcome
	for _, o := range outcomes {
		if !o.OK {
			bad = append(bad, o)
		}
	}
	return bad
}

// slowest returns the slowest sync of all rounds: an election does not care
// which round was the median.
func (r *Report) slowest() float64 {
	slowest := r.Fsync.MaxSeconds
	for _, round := range r.Rounds {
		slowest = max(slowest, round.Fsync.MaxSeconds)
	}
	return slowest
}

// electionTimeout derives the least election timeout from the slowest sync: a
// leader that waits for its disk sends no heartbeat, and the next may be as
// slow. etcd wants whole heartbeats, so it is rounded up to 100 ms.
func electionTimeout(slowest float64) float64 {
	const step = 0.1
	return math.Max(1, math.Ceil(2*slowest/step)) * step
}
