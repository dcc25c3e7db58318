package disk

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Comparison is a report beside an older one.
type Comparison struct {
	Path       string    `json:"path"`
	MeasuredAt time.Time `json:"measuredAt"`
	Changes    []Change  `json:"changes"`
	// Differs says why the two cannot be compared number by number.
	Differs []string `json:"differs,omitempty"`
}

// Change is a number before and after.
type Change struct {
	Metric        Metric  `json:"metric"`
	Old           float64 `json:"old"`
	New           float64 `json:"new"`
	ChangePercent float64 `json:"changePercent"`
	// Noise is set where the change is within what the rounds of either report
	// differ by anyway.
	Noise bool `json:"noise"`
}

// MaxReport bounds what is read of an older report, in bytes.
const MaxReport = 256 << 20

// ReadReport reads a report that was written as JSON.
func ReadReport(from io.Reader) (*Report, error) {
	r := new(Report)
	if err := json.NewDecoder(io.LimitReader(from, MaxReport)).Decode(r); err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	if r.Path == "" || r.Pattern == "" || len(r.Rounds) == 0 {
		return nil, errors.New("read report: not a report of disk check")
	}
	return r, nil
}

// CompareWith sets the report beside an older one.
func (r *Report) CompareWith(old *Report) {
	c := &Comparison{Path: old.Path, MeasuredAt: old.MeasuredAt, Changes: []Change{}}
	for _, m := range []Metric{P50, P90, P95, P99, P999, Max, Mean, IOPS, WriteRate, ReadRate} {
		before, hadIt := old.value(m)
		after, hasIt := r.value(m)
		if !hadIt || !hasIt || before <= 0 {
			continue
		}
		c.Changes = append(c.Changes, Change{
			Metric: m, Old: before, New: after, ChangePercent: 100 * (after - before) / before,
			Noise: within(after, old.Rounds, m) || within(before, r.Rounds, m),
		})
	}
	for _, d := range []struct {
		what     string
		old, new any
	}{
		{"pattern", old.Pattern, r.Pattern},
		{"method", old.Method, r.Method},
		{"block", old.Block, r.Block},
		{"jobs", old.Jobs, r.Jobs},
		{"gentle", old.Gentle, r.Gentle},
	} {
		if d.old != d.new {
			c.Differs = append(c.Differs, fmt.Sprintf("%s was %v and is %v", d.what, d.old, d.new))
		}
	}
	r.Compared = c
}

// within reports whether v lies in the range that a metric has over rounds.
func within(v float64, rounds []Round, m Metric) bool {
	below, above := false, false
	for _, round := range rounds {
		one := Report{Fsync: round.Fsync, IOPS: round.IOPS, Bandwidth: round.Bandwidth}
		got, ok := one.value(m)
		if !ok {
			return false
		}
		below, above = below || got <= v, above || got >= v
	}
	return below && above
}
