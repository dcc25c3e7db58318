package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/store"
)

// ErrUnsureTime refuses to delete by age, because it is not sure what time it is.
var ErrUnsureTime = errors.New("nothing was deleted, because the time is not certain")

// Bounds of how long a repository may have been silent. Beyond, either the clock
// is wrong, or whoever deletes now has not looked for long.
const (
	manyIntervals = 10                   // times the usual time between two backups
	longSilence   = 100 * 24 * time.Hour // suspicious where no interval is known
	usualAmong    = 20                   // so many of the newest backups tell the interval

	// What is never suspicious: before backups are deleted, for that fails the run,
	// and before leftovers are, which can as well stay until the next one.
	shortSilence     = 2 * 24 * time.Hour
	shortestLeftover = 12 * time.Hour
)

// storageNow returns the time by the clock of the storage, which stamps what is
// stored there. It fails where that clock and the local one disagree, or where
// the storage tells no time; with trusted it takes what there is.
func storageNow(ctx context.Context, repo store.Store, local time.Time, trusted bool) (time.Time, error) {
	there, err := repo.Now(ctx)
	switch {
	case err == nil && (trusted || there.Sub(local).Abs() <= maxSkew):
		return there, nil
	case trusted:
		return local, nil
	case ctx.Err() != nil:
		return local, context.Cause(ctx)
	case err != nil:
		return local, fmt.Errorf("%w: %w", ErrUnsureTime, err)
	}
	return there, hint.With(fmt.Errorf("%w: it is %s on this machine and %s by the storage's clock", ErrUnsureTime,
		local.UTC().Format(time.RFC3339), there.UTC().Format(time.RFC3339)), "set both clocks by NTP")
}

// checkSilence fails where the newest backup is many intervals old. A clock that
// is wrong by more than the storage can tell, because the storage is this
// machine's own disk, looks like that. A silence of tolerated is never too long.
// The times are sorted, oldest first.
func checkSilence(times []time.Time, now time.Time, tolerated time.Duration) error {
	times = slices.DeleteFunc(slices.Clone(times), func(t time.Time) bool { return inFuture(t, now) })
	if len(times) == 0 {
		return nil
	}
	newest := times[len(times)-1]
	silence, limit := now.Sub(newest), longSilence
	usual, known := usualInterval(times)
	if known {
		limit = max(manyIntervals*usual, tolerated)
	}
	if silence <= limit {
		return nil
	}
	often := ""
	if known {
		often = fmt.Sprintf(", and they used to come every %s", usual.Round(time.Second))
	}
	return hint.With(fmt.Errorf("%w: the newest backup before is %s old%s", ErrUnsureTime, silence.Round(time.Second), often),
		"check the clock of this machine (date -u)")
}

// usualInterval is the median time between the newest backups.
func usualInterval(times []time.Time) (time.Duration, bool) {
	times = times[max(0, len(times)-usualAmong):]
	var gaps []time.Duration
	for i := 1; i < len(times); i++ {
		gaps = append(gaps, times[i].Sub(times[i-1]))
	}
	if len(gaps) < 2 {
		return 0, false
	}
	slices.Sort(gaps)
	return gaps[len(gaps)/2], true
}
