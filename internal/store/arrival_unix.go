//go:build linux || darwin || freebsd || netbsd || dragonfly || openbsd

package store

import (
	"io/fs"
	"syscall"
	"time"
)

// arrival is when a file got its present content or name here, whatever time it
// claims: tools that copy files keep their old times.
func arrival(info fs.FileInfo) time.Time {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.ModTime()
	}
	if changed := changedAt(stat); changed.After(info.ModTime()) {
		return changed
	}
	return info.ModTime()
}
