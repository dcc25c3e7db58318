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
	// ErrUnread tells that an age is not known, because a younger backup may be
	// there that could not be looked at.
	ErrUnread = errors.New("a younger backup could not be read")
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
	Notes              []string  `json:"notes,omitempty"` // clocks that are wrong, backups that cannot be read
}

// Age holds the newest good backup against limit, and the newest one that a
// verification proved against verifiedLimit; zero means no limit. Of several
// clusters one must be named. The error is ErrTooOld if a limit is passed,
// ErrClock if only a backup stamped in the future might be young enough, and
// ErrUnread if only one might that could not be looked at.
func Age(ctx context.Context, repo store.Store, cluster string, limit, verifiedLimit time.Duration, now time.Time) (*Freshness, error) {
	l, err := readListing(ctx, repo, cluster)
	if err != nil {
		return nil, err
	}
	if clusters := l.clusters(); len(clusters) > 1 {
		return nil, ambiguous(clusters)
	}
	all, err := l.newest(ctx, firstBatch, func(all []*Backup) bool {
		newest, _ := newestGood(all, false)
		return newest != nil && slices.ContainsFunc(all, func(b *Backup) bool {
			return b.Good() && b.Lineage == newest.Lineage && !inFuture(b.CreatedAt, now)
		})
	})
	if err != nil {
		return nil, err
	}
	newest, _ := newestGood(all, false) // none is what the judgement says
	younger := unusable(all, newest)
	unread := unread(younger)
	var good, proven []dated
	if newest != nil {
		seen, err := l.lastSeen(ctx)
		if err != nil {
			return nil, err
		}
		good, proven = stamps(all, newest.Lineage, seen)
		if len(proven) == 0 {
			older, err := l.newestProven(ctx, all, newest.Lineage)
			if err != nil {
				return nil, err
			}
			_, proven = stamps(older, newest.Lineage, seen)
			unread = append(unread, unreadRecords(older)...)
		}
		unread = append(unread, unreadRecords(all)...)
	}
	f := &Freshness{MaxSeconds: limit.Seconds(), VerifiedMaxSeconds: verifiedLimit.Seconds()}
	f.noteUnusable(younger)
	err = f.judge(judgeAge("good backup", good, limit, now).unless(unread),
		judgeAge("verified backup", proven, verifiedLimit, now).unless(unread))
	return f, err
}

// noteUnusable tells of backups that do not count, of many the youngest.
func (f *Freshness) noteUnusable(younger []*Backup) {
	var some []*Backup
	for _, b := range younger {
		if !b.unread {
			some = append(some, b)
		}
	}
	if len(some) == 0 {
		return
	}
	note := fmt.Sprintf("backup %s does not count: %s", some[0].Name, some[0].Problem)
	if len(some) > 1 {
		note += fmt.Sprintf(" (and %d others)", len(some)-1)
	}
	f.Notes = append(f.Notes, note)
}

// provenTries bounds how many backups with a verification are read to find the
// newest proven one.
const provenTries = 3 * readers

// newestProven reads on to the older backups that have a verification, until one
// is proven.
func (l *listing) newestProven(ctx context.Context, read []*Backup, lineage string) ([]*Backup, error) {
	verified := *l
	verified.manifests = nil
	for _, o := range l.manifests {
		known := slices.ContainsFunc(read, func(b *Backup) bool { return b.Name == o.base })
		if !known && len(l.records[o.base]) > 0 {
			verified.manifests = append(verified.manifests, o)
		}
	}
	return verified.newest(ctx, firstBatch, func(all []*Backup) bool {
		_, proven := stamps(all, lineage, nil)
		return len(proven) > 0 || len(all) >= provenTries
	})
}

// unreadRecords returns the backups whose verification could not be read.
func unreadRecords(all []*Backup) (some []*Backup) {
	for _, b := range all {
		if b.unreadRecord != nil {
			some = append(some, b)
		}
	}
	return some
}

// unless says that a judgement is not sure where it is bad and backups could not
// be looked at that may be younger.
func (j judged) unless(unread []*Backup) judged {
	if len(unread) == 0 {
		return j
	}
	note := fmt.Sprintf("backup %s cannot be read: %s", unread[0].Name, unread[0].unreadBecause())
	if j.note == "" {
		j.note = note
	}
	if j.err != nil {
		j.err, j.problem = ErrUnread, note
	}
	return j
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
		if err == nil || !errors.Is(err, ErrTooOld) && errors.Is(j.err, ErrTooOld) {
			err = fmt.Errorf("%w: %s", j.err, j.problem)
		}
	}
	f.OK = err == nil
	return err
}

// lastSeen reads the newest record of a run that found nothing changed.
func (l *listing) lastSeen(ctx context.Context) (*Seen, error) {
	for _, newest := range slices.Backward(l.seen) {
		key := newest.cluster + "/" + newest.base + seenSuffix
		raw, err := readSmall(ctx, l.repo, key)
		if errors.Is(err, store.ErrNotExist) || errors.Is(err, ErrUntrusted) {
			continue
		}
		var seen Seen
		if err == nil {
			err = json.Unmarshal(raw, &seen)
		}
		if err != nil {
			return nil, fmt.Errorf("read the record of an unchanged run, %s: %w", key, err)
		}
		return &seen, nil
	}
	return nil, nil
}
