package scratch

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock locks a file for this open file alone, as etcd locks its own.
func tryLock(f *os.File) error {
	whole := unix.Flock_t{Type: unix.F_WRLCK}
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &whole)
	if errors.Is(err, unix.EINVAL) { // a kernel without these locks
		return tryFlock(f)
	}
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return ErrLocked
	}
	return err
}
