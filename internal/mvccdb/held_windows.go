package mvccdb

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// IsHeldAlone reports whether somebody holds the lock that bbolt takes on a
// database it writes to, as a running etcd does. A lock that is free is taken,
// shared, until f is closed: etcd does not start meanwhile. The error says that
// this cannot be told, on a filesystem without locks.
func IsHeldAlone(f *os.File) (bool, error) {
	// bbolt locks one byte at the very end of what an offset can say.
	at := &windows.Overlapped{Offset: ^uint32(0), OffsetHigh: ^uint32(0)}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return true, nil
	}
	return false, err
}
