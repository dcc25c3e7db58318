//go:build darwin || freebsd || netbsd

package store

import (
	"syscall"
	"time"
)

func changedAt(stat *syscall.Stat_t) time.Time {
	return time.Unix(int64(stat.Ctimespec.Sec), int64(stat.Ctimespec.Nsec)) //nolint:unconvert // of other sizes elsewhere
}
