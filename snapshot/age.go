package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/etcdkit/etcdkit/internal/store"
)

// ErrTooOld tells that the newest backup is older than allowed, or that there
// is none.
var ErrTooOld = errors.New("the newest backup is too old")

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
}

// Age holds the newest good backup against max, and the newest one that a
// verification proved against verifiedMax; zero means no limit. Of several
// clusters one must be named. The error is ErrTooOld if a limit is passed.
func Age(ctx context.Context, repo store.Store, cluster string, limit, verifiedLimit time.Duration, now time.Time) (*Freshness, error) {
	l, err := readListing(ctx, repo, cluster)
	if err != nil {
		return nil, err
	}
	all, err := l.backups(ctx, repo)
	if err != nil {
		return nil, err
	}
	f := &Freshness{MaxSeconds: limit.Seconds(), VerifiedMaxSeconds: verifiedLimit.Seconds()}
	newest, err := Latest(all, false)
	if errors.Is(err, ErrAmbiguous) {
		return nil, err
	}
	if err == nil {
		f.Newest, f.NewestAt = newest.Name, newest.CreatedAt
		if seen, err := l.lastSeen(ctx, repo); err != nil {
			return nil, err
		} else if seen != nil && seen.Backup == newest.Name && seen.At.After(f.NewestAt) {
			f.NewestAt = seen.At
		}
		f.proven(all, newest.Lineage)
	}
	f.judge(limit, verifiedLimit, now)
	if !f.OK {
		return f, fmt.Errorf("%w: %s", ErrTooOld, f.Problems[0])
	}
	return f, nil
}

// proven finds the newest backup of a lineage whose content was proven.
func (f *Freshness) proven(all []*Backup, lineage string) {
	for _, b := range all {
		if v := b.Verified; b.Lineage == lineage && b.Good() && v != nil && v.OK && v.Level.depth() >= LevelDecoded.depth() {
			f.Verified, f.VerifiedAt = b.Name, b.CreatedAt
		}
	}
	if f.Verified == f.Newest {
		f.VerifiedAt = f.NewestAt
	}
}

func (f *Freshness) judge(limit, verifiedLimit time.Duration, now time.Time) {
	check := func(what, name string, at time.Time, limit time.Duration) *float64 {
		if name == "" {
			if limit > 0 {
				f.Problems = append(f.Problems, "there is no "+what)
			}
			return nil
		}
		age := now.Sub(at)
		if limit > 0 && age > limit {
			f.Problems = append(f.Problems, fmt.Sprintf("the newest %s, %s, is %s old, allowed is %s", what, name, age.Round(time.Second), limit))
		}
		seconds := age.Seconds()
		return &seconds
	}
	f.AgeSeconds = check("good backup", f.Newest, f.NewestAt, limit)
	f.VerifiedAgeSeconds = check("verified backup", f.Verified, f.VerifiedAt, verifiedLimit)
	f.OK = len(f.Problems) == 0
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
