package secrets

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// OSFile makes a File of an *os.File.
type OSFile struct{ *os.File }

// Size implements File.
func (f OSFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// openRegular opens a regular file. Anything else is refused, and a pipe does
// not block.
func openRegular(path string) (f *os.File, size int64, err error) {
	f, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("not a regular file: %s", info.Mode().Type())}
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}
