package store

import (
	"io/fs"
	"syscall"
	"time"
)

// arrival is when a file was made or written here, whatever time it claims:
// tools that copy files keep their old times.
func arrival(info fs.FileInfo) time.Time {
	data, ok := info.Sys().(*syscall.Win32FileAttributeData)
	if !ok {
		return info.ModTime()
	}
	if made := time.Unix(0, data.CreationTime.Nanoseconds()); made.After(info.ModTime()) {
		return made
	}
	return info.ModTime()
}
