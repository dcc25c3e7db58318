package secrets

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/etcdkit/etcdkit/internal/freespace"
)

// Clone returns the file as it is at this moment, where the filesystem lets two
// files share their blocks. The copy has no name, so that it is gone with this
// process, however that ends. There is none where the filesystem could not take
// everything that the member may write while the copy is there.
func (f OSFile) Clone() (File, io.Closer, error) {
	size, err := f.Size()
	if err != nil {
		return nil, nil, err
	}
	dir := filepath.Dir(f.Name())
	if free, err := freespace.Of(dir); err != nil || free < 2*uint64(size) {
		return nil, nil, errors.Join(err, fmt.Errorf("copy %s: too little space", f.Name()))
	}
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, nil, &os.PathError{Op: "create", Path: dir, Err: err}
	}
	clone := os.NewFile(uintptr(fd), f.Name())
	conn, err := f.SyscallConn()
	if err == nil {
		ctlErr := conn.Control(func(from uintptr) { err = unix.IoctlFileClone(fd, int(from)) })
		err = errors.Join(err, ctlErr)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("copy %s: %w", f.Name(), err), clone.Close())
	}
	return OSFile{clone}, clone, nil
}
