package disk

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// measured is a report with the numbers that a verdict depends on.
func measured(p99, iops, rate float64) *Report {
	r := &Report{Pattern: Fio, Fsync: Latency{Count: 10000, P99Seconds: p99, MaxSeconds: p99}, IOPS: iops}
	if rate > 0 {
		r.Bandwidth = &Bandwidth{WriteBytesPerSecond: rate, ReadBytesPerSecond: rate}
	}
	return r
}

func TestJudge(t *testing.T) {
	type answer struct {
		verdict  Verdict
		class    Class
		next     Class
		blockers string
	}
	for name, tc := range map[string]struct {
		report *Report
		want   answer
	}{
		"a fast disk carries the largest class":                      {measured(0.001, 5000, 500e6), answer{OK, XLarge, "", ""}},
		"exactly 10 ms is not below 10 ms":                           {measured(0.010, 5000, 500e6), answer{Slow, None, Minimum, "p99 10.0 ms, wanted below 10.0 ms"}},
		"a good p99 cannot make up for too few writes":               {measured(0.001, 49, 500e6), answer{Slow, None, Minimum, "iops 49, wanted at least 50"}},
		"fifty writes a second are the least":                        {measured(0.009, 50, 500e6), answer{OK, Minimum, Small, "iops 50, wanted at least 150"}},
		"too slow to recover is too slow":                            {measured(0.001, 5000, 9e6), answer{Slow, None, Minimum, "write 9.0 MB/s, wanted at least 10 MB/s"}},
		"a class needs its IOPS":                                     {measured(0.009, 449, 500e6), answer{OK, Small, Medium, "iops 449, wanted at least 450"}},
		"a class needs its bandwidth":                                {measured(0.001, 5000, 124e6), answer{OK, Medium, Large, "write 124 MB/s, wanted at least 125 MB/s"}},
		"a larger class never passes where a smaller one fails":      {measured(0.001, 5000, 24e6), answer{OK, Minimum, Small, "write 24 MB/s, wanted at least 25 MB/s"}},
		"what was not measured does not count against a disk":        {measured(0.001, 1499, 0), answer{OK, Large, XLarge, "iops 1,499, wanted at least 1,500"}},
		"everything that is missing for the next class is mentioned": {measured(0.002, 100, 11e6), answer{OK, Minimum, Small, "iops 100, wanted at least 150; write 11 MB/s, wanted at least 25 MB/s"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.report.judge(nil)
			var texts []string
			for _, o := range tc.report.Blockers {
				texts = append(texts, o.String())
			}
			got := answer{tc.report.Verdict, tc.report.Class, tc.report.Next, strings.Join(texts, "; ")}
			if got != tc.want || errors.Is(err, ErrTooSlow) != (tc.want.verdict == Slow) {
				t.Errorf("got %+v, %v; want %+v", got, err, tc.want)
			}
		})
	}
}

func TestARequirementReplacesTheMinimum(t *testing.T) {
	for name, tc := range map[string]struct {
		require string
		want    error
	}{
		"met":                                    {"p99=10ms,iops=500", nil},
		"one of two not met":                     {"p99=10ms,iops=5000", ErrTooSlow},
		"a slow disk may be required to be slow": {"p99=1s", nil},
		"what was not measured cannot be told":   {"read=100MB", ErrCannotMeasure},
	} {
		t.Run(name, func(t *testing.T) {
			required, err := ParseRequirements(tc.require)
			if err != nil {
				t.Fatal(err)
			}
			if err := measured(0.009, 600, 0).judge(required); !errors.Is(err, tc.want) || (tc.want == nil) != (err == nil) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
	if err := measured(0.5, 2, 0).judge(Requirements{{P99, 1}}); err != nil {
		t.Errorf("below etcd's minimum, but as required: got %v", err)
	}
}

func TestParseRequirementsRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"nothing": "", "no limit": "p99", "no such number": "p42=10ms", "a time without unit": "p99=10",
		"no time at all": "p99=0s", "a rate that is none": "write=fast", "negative operations": "iops=-5",
		"not a number": "iops=NaN", "endless": "iops=Inf", "a comma too many": "p99=10ms,",
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := ParseRequirements(text); !errors.Is(err, ErrOptions) {
				t.Errorf("%q gave %v, %v; want a bad option", text, got, err)
			}
		})
	}
}

func TestTheLeastElectionTimeoutSurvivesTheSlowestSync(t *testing.T) {
	for name, tc := range map[string]struct{ slowest, want float64 }{
		"a fast disk allows the least there is":          {0.002, 0.1},
		"two slow syncs in a row must fit":               {0.120, 0.3},
		"a stall of seconds needs more than the default": {1.3, 2.6},
	} {
		t.Run(name, func(t *testing.T) {
			if got := electionTimeout(tc.slowest); math.Abs(got-tc.want) > 1e-9 {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
	r := measured(0.001, 500, 0)
	r.Rounds = []Round{{Fsync: Latency{MaxSeconds: 0.001}}, {Fsync: Latency{MaxSeconds: 0.9}}}
	if err := r.judge(nil); err != nil || math.Abs(r.LeastElectionTimeout-1.8) > 1e-9 {
		t.Errorf("got %v, %v; want the slowest sync of all rounds to count", r.LeastElectionTimeout, err)
	}
}

// TestOneHiccupIsNotAVerdict replays replicatedhq/troubleshoot#1215: a
// burst of slow syncs in one round of several.
func TestOneHiccupIsNotAVerdict(t *testing.T) {
	rounds := []Round{
		{Fsync: Latency{Count: 1000, P99Seconds: 0.002}, IOPS: 1000},
		{Fsync: Latency{Count: 1000, P99Seconds: 0.090}, IOPS: 200},
		{Fsync: Latency{Count: 1000, P99Seconds: 0.003}, IOPS: 900},
	}
	if got := median(rounds); got.Fsync.P99Seconds != 0.003 || got.IOPS != 900 {
		t.Errorf("quoted %+v, want the median round as a whole", got)
	}
	if got := median(rounds[:2]); got.Fsync.P99Seconds != 0.090 {
		t.Errorf("quoted %+v, of two rounds the slower one is quoted", got)
	}
}
