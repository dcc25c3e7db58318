//go:build unix

package snapshot

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// ownerOf returns who owns a file, nil if that cannot be found out.
func ownerOf(path string) *Owner {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return nil
	}
	return &Owner{UID: int(st.Uid), GID: int(st.Gid)}
}

// tryLockFolder locks an open folder for the caller alone.
func tryLockFolder(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errLocked
	}
	return err
}
