//go:build unix

package mvccdb

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// IsHeldAlone reports whether somebody holds the lock that bbolt takes on a
// database it writes to, as a running etcd does. A lock that is free is taken,
// shared, until f is closed: etcd does not start meanwhile. The error says that
// this cannot be told, on a filesystem without locks.
func IsHeldAlone(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}
