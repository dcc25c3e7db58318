package snapshot

import (
	"fmt"
	"os"
)

// writeBehind is how often bytes in the page cache are sent on to the disk, so
// that the last sync does not wait for all of them.
const writeBehind = 32 << 20

// copyFile is the database that a restore writes. It goes through the page
// cache, where etcd finds it when it starts: with writes past it a restore is
// no faster on most disks, and etcd's start much slower.
type copyFile struct {
	*os.File
	cloned bool // it shares the source's blocks: nothing is to be written
	size   int64
}

func createCopy(path string) (*copyFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &copyFile{File: f}, nil
}

// clone lets the file share the blocks of src, where the filesystem can.
func (f *copyFile) clone(src *os.File) { f.cloned = cloneFile(f.File, src) == nil }

// write appends b.
func (f *copyFile) write(b []byte) error {
	at := f.size
	f.size += int64(len(b))
	if f.cloned {
		return nil
	}
	if _, err := f.WriteAt(b, at); err != nil {
		return err
	}
	if at/writeBehind != f.size/writeBehind {
		startWriting(f.File, at/writeBehind*writeBehind, writeBehind)
	}
	return nil
}

// finish cuts the file to its size.
func (f *copyFile) finish(size int64) error {
	if err := f.Truncate(size); err != nil {
		return fmt.Errorf("cut the copy to its size: %w", err)
	}
	return nil
}
