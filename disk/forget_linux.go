package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// forget drops a synced file from the page cache, so that reading it reads the
// disk. It reports whether it could.
func forget(f *os.File) bool {
	return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) == nil
}
