// Package wholefile writes files that appear under their name only when they
// are whole, and last from then on.
package wholefile

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/etcdkit/etcdkit/internal/dirfd"
)

// File is a file on its way to its name. One of Keep and Discard ends it.
type File struct {
	*os.File
	dir        *dirfd.Dir // which the name is in, whatever happens to its path
	temp, name string
}

// Create begins a file beside path, for its owner alone.
func Create(path string) (*File, error) {
	dir, err := dirfd.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	id := make([]byte, 8)
	_, _ = rand.Read(id) // never fails, by its contract
	f := &File{dir: dir, name: filepath.Base(path)}
	f.temp = "." + f.name + "." + hex.EncodeToString(id)
	if f.File, err = dir.OpenFile(f.temp, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return f, nil
}

// Keep puts the file in the place of whatever has its name. When that fails,
// nothing is left of it.
func (f *File) Keep() error {
	defer f.dir.Close()
	err := f.Sync() // or a crash leaves an empty file under the name
	if err = errors.Join(err, f.Close()); err == nil {
		err = f.dir.Rename(f.temp, f.dir, f.name)
	}
	if err != nil {
		return errors.Join(err, f.dir.Unlink(f.temp))
	}
	return f.dir.Sync()
}

// Discard removes the file.
func (f *File) Discard() error {
	return errors.Join(f.Close(), f.dir.Unlink(f.temp), f.dir.Close())
}

// Write replaces the file at path by one with this content.
func Write(path string, content []byte, mode fs.FileMode) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err != nil {
		return errors.Join(err, f.Discard())
	}
	return f.Keep()
}

// SyncDir makes a new name or a removal in dir survive a power cut.
func SyncDir(dir string) error {
	d, err := dirfd.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
