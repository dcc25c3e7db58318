package dirfd

import (
	"errors"

	"golang.org/x/sys/unix"
)

// openSearch opens a folder that may be entered, but not read.
const openSearch = unix.O_PATH

// openTries bounds the retries of an open beside somebody who renames folders.
const openTries = 32

// openBelow opens an entry of a folder without following a link, and on demand
// only on the mount of the folder.
func openBelow(dir int, name string, flags int, perm uint32, sameMount bool) (int, error) {
	how := unix.OpenHow{
		Flags: uint64(flags | unix.O_NOFOLLOW), Mode: uint64(perm),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	if flags&unix.O_CREAT == 0 {
		how.Mode = 0 // the kernel refuses any other
	}
	if sameMount {
		how.Resolve |= unix.RESOLVE_NO_XDEV
	}
	for try := 1; ; try++ {
		fd, err := unix.Openat2(dir, name, &how)
		switch {
		case errors.Is(err, unix.EAGAIN) && try < openTries:
		case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM): // an old kernel, or a filter of system calls
			return openOneName(dir, name, flags, perm, sameMount)
		default:
			return fd, err
		}
	}
}

// renameNew renames to a name that does not exist.
func renameNew(from int, name string, to int, newName string) error {
	return unix.Renameat2(from, name, to, newName, unix.RENAME_NOREPLACE)
}
