//go:build unix

package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// isHeldAlone reports whether somebody holds the lock that bbolt takes on a
// database it writes to. A lock that is free is taken, shared, until the file
// is closed.
func isHeldAlone(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}
