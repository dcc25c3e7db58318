package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// bareFdatasync is fdatasync without telling Go's scheduler, which takes the
// processor away from a call that blocks and has to give it back: some 10 µs,
// and on a loaded machine much more, that fio does not have and that are not
// the disk's.
func bareFdatasync(f *os.File) error {
	fd := f.Fd()
	for {
		switch _, _, errno := unix.RawSyscall(unix.SYS_FDATASYNC, fd, 0, 0); errno {
		case 0:
			return nil
		case unix.EINTR:
		default:
			return os.NewSyscallError("fdatasync", errno)
		}
	}
}
