package snapshot

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"syscall"
)

const (
	// directUnit is what direct writes are aligned to. No disk has larger
	// blocks; where one should, the copy goes through the page cache.
	directUnit = 4096
	// writeBehind is how often bytes in the page cache are sent on to the
	// disk, so that the last sync does not wait for all of them.
	writeBehind = 32 << 20
)

// copyFile is the database that a restore writes.
type copyFile struct {
	*os.File
	direct bool // past the page cache, in whole units
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

// bypass lets writes bypass the page cache, where the filesystem can: a
// gigabyte of it need not be found, filled and flushed, and what other
// programs have there stays.
func (f *copyFile) bypass() { f.direct = setDirect(f.File, true) == nil }

// write appends a piece. With direct writes the last piece is filled up to a
// whole unit; the file is cut to its size in the end.
func (f *copyFile) write(p piece) error {
	at := f.size
	f.size += int64(p.n)
	if f.cloned {
		return nil
	}
	if f.direct {
		whole := (p.n + directUnit - 1) / directUnit * directUnit
		clear(p.buf[p.n:whole])
		_, err := f.WriteAt(p.buf[:whole], at)
		if !errors.Is(err, syscall.EINVAL) {
			return err
		}
		f.direct = false
		if err := setDirect(f.File, false); err != nil {
			return err
		}
	}
	if _, err := f.WriteAt(p.buf[:p.n], at); err != nil {
		return err
	}
	if at/writeBehind != f.size/writeBehind {
		startWriting(f.File, at/writeBehind*writeBehind, writeBehind)
	}
	return nil
}

// finish cuts the file to its size. What is written now goes through the page
// cache.
func (f *copyFile) finish(size int64) error {
	if f.direct {
		f.direct = false
		if err := setDirect(f.File, false); err != nil {
			return fmt.Errorf("finish the copy: %w", err)
		}
	}
	if err := f.Truncate(size); err != nil {
		return fmt.Errorf("cut the copy to its size: %w", err)
	}
	return nil
}

// alignedBuffer returns memory that direct writes can be made from.
func alignedBuffer(size int) []byte {
	b := make([]byte, size+directUnit)
	skip := -reflect.ValueOf(b).Pointer() % directUnit // the collector moves no heap memory
	return b[skip:][:size:size]
}
