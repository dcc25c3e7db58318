package snapshot

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Policy says which backups of one lineage to keep. Every rule keeps; what no
// rule keeps is dropped.
type Policy struct {
	Last, Hourly, Daily, Weekly, Monthly, Yearly int

	Within   time.Duration // keep all that are younger
	MaxSize  int64         // bytes; older ones go when what the rules keep is larger
	ByMember bool          // count each member's backups apart
}

// ErrPolicy tells that a policy would keep nothing, or makes no sense.
var ErrPolicy = errors.New("no rule says what to keep")

// IsZero reports whether nothing at all is asked for.
func (p Policy) IsZero() bool { return p == Policy{} || p == Policy{ByMember: true} }

// Validate refuses a policy without a rule.
func (p Policy) Validate() error {
	for _, n := range []int64{int64(p.Last), int64(p.Hourly), int64(p.Daily), int64(p.Weekly), int64(p.Monthly), int64(p.Yearly), int64(p.Within), p.MaxSize} {
		if n < 0 {
			return errors.New("a rule of what to keep is negative")
		}
	}
	if p.IsZero() {
		return ErrPolicy
	}
	return nil
}

// Decision is what is to happen to one backup, and why.
type Decision struct {
	Backup  *Backup  `json:"backup"`
	Keep    bool     `json:"keep"`
	Reasons []string `json:"reasons"`
	Deleted bool     `json:"deleted"`

	future  bool            // stamped by a wrong clock
	newest  bool            // stays whatever its size
	keptBy  map[string]bool // the rules that keep it
	counted bool            // it takes one of the places that a rule has
}

func (d *Decision) keep(reason string) {
	d.Keep = true
	d.Reasons = append(d.Reasons, reason)
}

func (d *Decision) drop(reason string) {
	d.Keep = false
	d.Reasons = []string{reason}
}

// Split decides about the backups of one lineage, given and returned oldest
// first. The newest good one is always kept, and so is what is stamped in the
// future: it takes nobody's place, and nobody knows how old it is.
func (p Policy) Split(all []*Backup, now time.Time) []*Decision {
	decisions := make([]*Decision, len(all))
	for i, b := range all {
		decisions[i] = &Decision{Backup: b, future: inFuture(b.CreatedAt, now)}
	}
	groups := map[string][]*Decision{}
	for _, d := range slices.Backward(decisions) { // newest first
		member := ""
		if p.ByMember {
			member = d.Backup.MemberID
		}
		groups[member] = append(groups[member], d)
	}
	for _, group := range groups {
		p.apply(group, now)
	}
	p.protectNewest(decisions)
	p.limitSize(decisions)
	for _, d := range decisions {
		if !d.Keep && len(d.Reasons) == 0 {
			d.drop("no rule keeps it")
		}
	}
	return decisions
}

// apply marks what the rules keep of one group, which is newest first. Only
// good backups count: one that cannot be relied on takes nobody's place. Each
// rule is applied once more to those that were examined, so that one that was
// not never takes the place of one that was.
func (p Policy) apply(group []*Decision, now time.Time) {
	for _, r := range p.rules() {
		r.apply(group, (*Backup).Good, "")
		r.apply(group, (*Backup).Proven, " of those examined")
	}
	for _, d := range group {
		if d.future {
			d.keep("stamped in the future by a wrong clock")
			continue
		}
		if p.Within > 0 && now.Sub(d.Backup.CreatedAt) < p.Within {
			d.keep("within " + p.Within.String())
		}
	}
}

// rule keeps the newest backup of each of the last count periods.
type rule struct {
	name   string
	count  int
	period func(time.Time) string
}

// apply keeps what the rule keeps of those that count.
func (r rule) apply(group []*Decision, counts func(*Backup) bool, of string) {
	kept, last := 0, ""
	for _, d := range group {
		period := r.period(d.Backup.CreatedAt.UTC())
		if !counts(d.Backup) || d.future || kept >= r.count || (period == last && kept > 0) {
			continue
		}
		kept, last = kept+1, period
		d.counted = true
		if !d.keptBy[r.name] {
			d.keep(fmt.Sprintf("%s %d of %d%s", r.name, kept, r.count, of))
			if d.keptBy == nil {
				d.keptBy = make(map[string]bool)
			}
			d.keptBy[r.name] = true
		}
	}
}

func (p Policy) rules() []rule {
	return []rule{
		{"last", p.Last, func(t time.Time) string { return t.String() }},
		{"hourly", p.Hourly, func(t time.Time) string { return t.Format("2006010215") }},
		{"daily", p.Daily, func(t time.Time) string { return t.Format("20060102") }},
		{"weekly", p.Weekly, func(t time.Time) string {
			year, week := t.ISOWeek()
			return fmt.Sprint(year, "-", week)
		}},
		{"monthly", p.Monthly, func(t time.Time) string { return t.Format("200601") }},
		{"yearly", p.Yearly, func(t time.Time) string { return t.Format("2006") }},
	}
}

// protectNewest keeps the newest good backup whatever the rules say, and what
// is younger still: it may be all that there is. Where clocks and revisions
// disagree which one that is, it keeps both.
func (p Policy) protectNewest(decisions []*Decision) {
	var newest *Decision
	for _, d := range decisions {
		if d.Backup.Good() && !d.future && (newest == nil || d.Backup.earliest() >= newest.Backup.earliest()) {
			newest = d
		}
	}
	if newest != nil {
		newest.newest = true
		newest.keep("newest good one")
	}
	protect(decisions, "newest examined one", (*Backup).Proven)
	protect(decisions, "newest verified one", func(b *Backup) bool { return b.Good() && b.verifiedDeep() })
	for _, d := range slices.Backward(decisions) {
		switch {
		case d.future:
		case d.Backup.Good():
			if d != newest {
				d.newest = true
				d.keep("youngest good one")
			}
			return
		default:
			d.keep("no good one is younger")
		}
	}
}

// protect keeps the newest backup of a kind, whatever the rules say.
func protect(decisions []*Decision, reason string, is func(*Backup) bool) {
	var newest *Decision
	for _, d := range decisions {
		if is(d.Backup) && !d.future && (newest == nil || d.Backup.earliest() >= newest.Backup.earliest()) {
			newest = d
		}
	}
	if newest != nil && !newest.newest {
		newest.newest = true
		newest.keep(reason)
	}
}

// worth orders backups by what may take the place of what: one that was not
// examined never takes the place of one that was, nor one without quorum that of
// a good one.
func (b *Backup) worth() int {
	switch {
	case b.Proven():
		return 2
	case b.Good():
		return 1
	}
	return 0
}

// limitSize drops the oldest of what is kept until the rest fits. What was
// kept as newest stays. Against a backup count the younger ones that are worth
// as much, or more.
func (p Policy) limitSize(decisions []*Decision) {
	if p.MaxSize <= 0 {
		return
	}
	var total [3]int64 // by the least worth that counts
	protected := true
	for _, d := range slices.Backward(decisions) {
		if !d.Keep && p.onlySize() {
			d.keep("fits")
		}
		if !d.Keep {
			continue
		}
		worth := d.Backup.worth()
		if total[worth]+d.Backup.StoredBytes > p.MaxSize && !protected && !d.future && !d.newest {
			d.drop("together with the younger ones it is larger than the size allowed")
		} else {
			for w := range worth + 1 {
				total[w] += d.Backup.StoredBytes
			}
		}
		if d.Backup.Good() && !d.future {
			protected = false
		}
	}
}

// onlySize reports whether the size is the only rule, so that what fits stays.
func (p Policy) onlySize() bool {
	return p == Policy{MaxSize: p.MaxSize, ByMember: p.ByMember}
}
