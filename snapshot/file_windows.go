package snapshot

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// tryLockShared takes the lock that etcd's database has, as a reader. A
// running etcd holds it alone.
func tryLockShared(f *os.File) error {
	// bbolt locks one byte at the very end of what an offset can say.
	at := &windows.Overlapped{Offset: ^uint32(0), OffsetHigh: ^uint32(0)}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return errLocked
	}
	return err
}

// ownerOf returns who owns a file, nil if that cannot be found out.
func ownerOf(string) *Owner { return nil }

// tryLockFolder locks nothing: Windows has no locks of folders.
func tryLockFolder(*os.File) error { return errors.ErrUnsupported }
