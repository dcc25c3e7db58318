//go:build unix

package dirfd

import (
	"errors"

	"golang.org/x/sys/unix"
)

// openOneName opens an entry of a folder where the kernel has no call that does
// all of it. A name has one component, so that only the last one can be a link.
func openOneName(dir int, name string, flags int, perm uint32, sameMount bool) (int, error) {
	fd, err := unix.Openat(dir, name, flags|unix.O_NOFOLLOW, perm)
	if err != nil || !sameMount {
		return fd, err
	}
	var here, there unix.Stat_t
	err = errors.Join(unix.Fstat(dir, &here), unix.Fstat(fd, &there))
	if err == nil && here.Dev != there.Dev {
		err = unix.EXDEV
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}
