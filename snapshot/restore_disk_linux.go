package snapshot

import (
	"os"

	"golang.org/x/sys/unix"
)

// startWriting lets the kernel begin to write a part of f to the disk. What
// fails here is found by the sync at the end.
func startWriting(f *os.File, offset, size int64) {
	_ = onFD(f, func(fd int) error { return unix.SyncFileRange(fd, offset, size, unix.SYNC_FILE_RANGE_WRITE) })
}

// cloneFile lets dst share the blocks of src.
func cloneFile(dst, src *os.File) error {
	return onFD(src, func(from int) error {
		return onFD(dst, func(to int) error { return unix.IoctlFileClone(to, from) })
	})
}

// onFD calls fn with the descriptor of f, as it is.
func onFD(f *os.File, fn func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	if ctlErr := conn.Control(func(fd uintptr) { err = fn(int(fd)) }); ctlErr != nil {
		return ctlErr
	}
	return err
}
