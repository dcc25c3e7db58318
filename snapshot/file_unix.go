//go:build unix

package snapshot

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// errLocked says that somebody else holds the lock.
var errLocked = errors.New("the file is locked")

// tryLockShared takes the lock that etcd's database has, as a reader. A
// running etcd holds it alone.
func tryLockShared(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errLocked
	}
	return err
}

// freeSpace returns the bytes that this user may still write below dir.
func freeSpace(dir string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return uint64(st.Bavail) * uint64(st.Bsize), nil // the types differ between systems
}
