//go:build linux || dragonfly || openbsd

package store

import (
	"syscall"
	"time"
)

func changedAt(stat *syscall.Stat_t) time.Time {
	return time.Unix(int64(stat.Ctim.Sec), int64(stat.Ctim.Nsec)) //nolint:unconvert // of other sizes elsewhere
}
