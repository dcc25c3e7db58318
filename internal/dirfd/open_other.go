//go:build unix && !linux

package dirfd

import "golang.org/x/sys/unix"

// openSearch is not to be had everywhere.
const openSearch = 0

// openBelow opens an entry of a folder without following a link, and on demand
// only on the filesystem of the folder.
func openBelow(dir int, name string, flags int, perm uint32, sameMount bool) (int, error) {
	return openOneName(dir, name, flags, perm, sameMount)
}

// renameNew has no call of its own here.
func renameNew(int, string, int, string) error { return unix.ENOSYS }
