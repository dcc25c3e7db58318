package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/etcdkit/etcdkit/internal/store"
)

// Causes of backups that are not known to be young enough.
var (
	// ErrTooOld tells that the newest backup is older than allowed, or that there
	// is none.
	ErrTooOld = errors.New("the newest backup is too old")
	// ErrClock tells that an age is not known, because a clock is wrong.
	ErrClock = errors.New("the age of the newest backup is not known")
)

// maxSkew is how far the clocks of two machines may differ.
const maxSkew = 5 * time.Minute

// inFuture reports whether a stamp was not made by the clock that says now.
func inFuture(at, now time.Time) bool { return at.After(now.Add(maxSkew)) }

// Freshness is how old the newest backups of a repository are. Times are those
// at which they were known to be the cluster's state.
type Freshness struct {
	OK                 bool      `json:"ok"`
	Newest             string    `json:"newest,omitempty"`
	NewestAt           time.Time `json:"newestAt,omitzero"`
	AgeSeconds         *float64  `json:"ageSeconds,omitempty"`
	MaxSeconds         float64   `json:"maxSeconds,omitempty"`
	Verified           string    `json:"verified,omitempty"`
	VerifiedAt         time.Time `json:"verifiedAt,omitzero"` // when the verified backup was taken
	VerifiedAgeSeconds *float64  `json:"verifiedAgeSeconds,omitempty"`
	VerifiedMaxSeconds float64   `json:"verifiedMaxSeconds,omitempty"`
	Problems           []string  `json:"problems,omitempty"`
	Notes              []string  `json:"notes,omitempty"` // clocks that are wrong
}

// Age holds the newest good backup against limit, and the newest one that a
// verification proved against verifiedLimit; zero means no limit. Of several
// clusters one must be named. The error is ErrTooOld if a limit is passed, and
// ErrClock if only a backup stamped in the future might be young enough.
func Age(ctx context.Context, repo store.Store, cluster string, limit, verifiedLimit time.Duration, now time.Time) (*Freshness, error) {
	l, err := readListing(ctx, repo, cluster)
	if err != nil {
		return nil, err
	}
	all, err := l.backups(ctx, repo)
	if err != nil {
		return nil, err
	}
	var good, proven []dated
	newest, err := Latest(all, false)
	switch {
	case errors.Is(err, ErrAmbiguous):
		return nil, err
	case err == nil:
		seen, err := l.lastSeen(ctx, repo)
		if err != nil {
			return nil, err
		}
		good, proven = stamps(all, newest.Lineage, seen)
	}
	f := &Freshness{MaxSeconds: limit.Seconds(), VerifiedMaxSeconds: verifiedLimit.Seconds()}
	err = f.judge(judgeAge("good backup", good, limit, now), judgeAge("verified backup", proven, verifiedLimit, now))
	return f, err
}

// dated is a backup and a time at which it was the cluster's state.
type dated struct {
	name string
	at   time.Time
}

// stamps dates the good backups of a lineage, and of these the proven ones.
func stamps(all []*Backup, lineage string, seen *Seen) (good, proven []dated) {
	for _, b := range all {
		if b.Lineage != lineage || !b.Good() {
			continue
		}
		mine := []dated{{b.Name, b.CreatedAt}}
		if seen != nil && seen.Backup == b.Name {
			mine = append(mine, dated{b.Name, seen.At})
		}
		good = append(good, mine...)
		if v := b.Verified; v != nil && v.OK && v.Level.depth() >= LevelDecoded.depth() {
			proven = append(proven, mine...)
		}
	}
	return good, proven
}

// judged is what can be said of the youngest of some backups.
type judged struct {
	dated
	age     *float64 // nil if not known
	note    string   // of a clock that is wrong
	err     error    // ErrTooOld or ErrClock
	problem string
}

// judgeAge holds the youngest backup against a limit. One stamped in the future
// has no age: it would stay young for as long as its clock was ahead.
func judgeAge(what string, all []dated, limit time.Duration, now time.Time) (j judged) {
	var youngest, ahead *dated
	for i, d := range all {
		into := &youngest
		if inFuture(d.at, now) {
			into = &ahead
		}
		if *into == nil || !d.at.Before((*into).at) {
			*into = &all[i]
		}
	}
	if ahead != nil {
		j.dated = *ahead
		j.note = fmt.Sprintf("backup %s is stamped %s, which is %s in the future: a clock is wrong, there or here",
			ahead.name, ahead.at.UTC().Format(time.RFC3339), ahead.at.Sub(now).Round(time.Second))
	}
	tooOld := "there is no " + what
	if youngest != nil {
		age := now.Sub(youngest.at)
		seconds := age.Seconds()
		j.dated, j.age = *youngest, &seconds
		if age <= limit {
			return j
		}
		tooOld = fmt.Sprintf("the newest %s, %s, is %s old, allowed is %s", what, j.name, age.Round(time.Second), limit)
	}
	switch {
	case limit <= 0:
	case ahead != nil:
		j.err, j.problem = ErrClock, j.note
	default:
		j.err, j.problem = ErrTooOld, tooOld
	}
	return j
}

// judge sums up. What is known to be too old beats what is not known.
func (f *Freshness) judge(good, proven judged) (err error) {
	f.Newest, f.NewestAt, f.AgeSeconds = good.name, good.at, good.age
	f.Verified, f.VerifiedAt, f.VerifiedAgeSeconds = proven.name, proven.at, proven.age
	for _, j := range []judged{good, proven} {
		if j.note != "" && !slices.Contains(f.Notes, j.note) {
			f.Notes = append(f.Notes, j.note)
		}
		if j.err == nil {
			continue
		}
		f.Problems = append(f.Problems, j.problem)
		if err == nil || errors.Is(err, ErrClock) && errors.Is(j.err, ErrTooOld) {
			err = fmt.Errorf("%w: %s", j.err, j.problem)
		}
	}
	f.OK = err == nil
	return err
}

// lastSeen reads the newest record of a run that found nothing changed.
func (l *listing) lastSeen(ctx context.Context, repo store.Store) (*Seen, error) {
	var newest *object
	for i, o := range l.seen {
		if newest == nil || o.at.After(newest.at) {
			newest = &l.seen[i]
		}
	}
	if newest == nil {
		return nil, nil
	}
	raw, err := readSmall(ctx, repo, newest.cluster+"/"+newest.base+seenSuffix)
	if errors.Is(err, store.ErrNotExist) {
		return nil, nil
	}
	var seen Seen
	if err != nil || json.Unmarshal(raw, &seen) != nil {
		return nil, err
	}
	return &seen, nil
}
