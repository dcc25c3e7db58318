package disk

import (
	"context"
	"fmt"
	"time"
)

const (
	// gentleRate and gentleBound keep a measurement from hurting an etcd: an
	// fdatasync shares the filesystem's journal with it. The bound is etcd's
	// usual heartbeat interval.
	gentleRate  = 50
	gentleBound = 100 * time.Millisecond
	// gentleShare is the part of the time in which the disk may work for us.
	gentleShare = 5

	gentleWrites = 200
	gentleRounds = 3
)

// pause is how long a gentle measurement rests after a write that took so long.
func pause(took time.Duration) time.Duration {
	return max(time.Second/gentleRate-took, (gentleShare-1)*took)
}

// rest waits, unless ctx ends first.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// tooSlow words why a gentle measurement stopped.
func tooSlow(took time.Duration) string {
	return fmt.Sprintf("stopped at a sync of %s, for it passed the %s that a gentle measurement allows", FormatSeconds(took.Seconds()), gentleBound)
}
