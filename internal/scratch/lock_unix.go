//go:build unix

package scratch

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func tryFlock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}
