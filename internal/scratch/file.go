package scratch

import (
	"errors"
	"os"

	"github.com/etcdkit/etcdkit/internal/dirfd"
)

// File is a temporary file for its owner alone, nameless where the system lets
// an open file go without a name: a killed process leaves nothing.
type File struct {
	*os.File
	dir  *dirfd.Dir // nil where the name is gone
	name string
}

// NewFile makes a file in a folder, "" means the system's folder for temporary
// files.
func NewFile(folder, prefix string) (*File, error) {
	if folder == "" {
		folder = os.TempDir()
	}
	dir, err := dirfd.Open(folder)
	if err != nil {
		return nil, err
	}
	name := prefix + random()
	file, err := dir.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	f := &File{File: file, dir: dir, name: name}
	if dir.Unlink(name) == nil {
		f.dir = nil
		_ = dir.Close()
	}
	return f, nil
}

// Close closes the file, after which nothing is left of it.
func (f *File) Close() error {
	err := f.File.Close()
	if f.dir != nil {
		err = errors.Join(err, f.dir.Unlink(f.name), f.dir.Close())
		f.dir = nil
	}
	return err
}
