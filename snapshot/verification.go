package snapshot

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/etcdkit/etcdkit/internal/scratch"
	"github.com/etcdkit/etcdkit/internal/store"
)

// Result is what a check found.
type Result string

// The results.
const (
	ResultOK      Result = "ok"
	ResultBad     Result = "bad"
	ResultUnknown Result = "unknown" // it could not be checked
)

// Level is how deep a verification went.
type Level string

// The levels, each with those before it.
const (
	LevelStored   Level = "stored"   // the stored bytes are those that were written
	LevelDecoded  Level = "decoded"  // the snapshot is whole and every revision in it readable
	LevelRestored Level = "restored" // an etcd booted from it serves what it should
)

// Verification is the outcome of one verification of one backup.
type Verification struct {
	Name   string    `json:"name"`
	Result Result    `json:"result"`
	OK     bool      `json:"ok"`              // result is ok
	Level  Level     `json:"level,omitempty"` // the deepest one reached
	At     time.Time `json:"at"`
	Checks []Check   `json:"checks"`

	// What the file itself says, from level decoded on.
	Revision        int64   `json:"revision,omitempty"`
	Keys            *int64  `json:"keys,omitempty"`
	HashKV          *uint32 `json:"hashKV,omitempty"`
	CompactRevision *int64  `json:"compactRevision,omitempty"`
	ToolVersion     string  `json:"toolVersion,omitempty"`

	// LeftAlone looked like what a killed drill leaves, and may not be that.
	LeftAlone []scratch.Left `json:"-"`
}

// Check is one thing that a verification looked at.
type Check struct {
	Name        string  `json:"name"`
	Result      Result  `json:"result"`
	Detail      string  `json:"detail,omitempty"`
	TookSeconds float64 `json:"tookSeconds"`
}

// depth orders the levels, 0 for none.
func (l Level) depth() int {
	return 1 + slices.Index([]Level{LevelStored, LevelDecoded, LevelRestored}, l)
}

// faultDepth is the depth at which a bad verification failed: the one after
// the last that it reached.
func (v *Verification) faultDepth() int { return v.Level.depth() + 1 }

// standing returns the verification of a backup that counts. Damage stays
// found until a later verification of at least that depth finds none: a look
// at the stored bytes alone says nothing about a database that cannot be read.
// Where none found damage that stands, it is the deepest good one, of equally
// deep ones the newest. It is nil if there is none.
func standing(all []*Verification) *Verification {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b *Verification) int {
		// At the same moment damage counts.
		return cmp.Or(a.At.Compare(b.At), order(a.Result == ResultBad, b.Result == ResultBad))
	})
	var bad, good *Verification
	for _, v := range all {
		switch {
		case v.Result == ResultBad:
			if bad == nil || v.faultDepth() >= bad.faultDepth() {
				bad = v
			}
		case v.Result != ResultOK:
		default:
			if bad != nil && v.Level.depth() >= bad.faultDepth() {
				bad = nil
			}
			if good == nil || v.Level.depth() >= good.Level.depth() {
				good = v
			}
		}
	}
	if bad != nil {
		return bad
	}
	return good
}

// readVerifications reads records. One that is no record counts for nothing, and
// unread tells of one that could not be read.
func readVerifications(ctx context.Context, repo store.Store, keys []string) (all []*Verification, unread, err error) {
	for _, key := range keys {
		raw, err := readSmall(ctx, repo, key)
		if err != nil && fatal(ctx, err) {
			return nil, nil, err
		}
		if err != nil && !errors.Is(err, store.ErrNotExist) && !errors.Is(err, ErrManifest) {
			unread = err
		}
		var v Verification
		if err == nil && json.Unmarshal(raw, &v) == nil {
			all = append(all, &v)
		}
	}
	return all, unread, nil
}
