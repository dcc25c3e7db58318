// Package wholefile writes files that appear under their name only when they
// are whole, and last from then on.
package wholefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// File is a file on its way to its name. One of Keep and Discard ends it.
type File struct {
	*os.File
	path string
}

// Create begins a file beside path, for its owner alone.
func Create(path string) (*File, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // 0600 by its contract
	if err != nil {
		return nil, err
	}
	return &File{File: f, path: path}, nil
}

// Keep puts the file in the place of whatever has its name. When that fails,
// nothing is left of it.
func (f *File) Keep() error {
	err := f.Sync() // or a crash leaves an empty file under the name
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), f.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return SyncDir(filepath.Dir(f.path))
}

// Discard removes the file.
func (f *File) Discard() error { return errors.Join(f.Close(), os.Remove(f.Name())) }

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
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) {
		err = nil // file systems, and Windows, that cannot sync a folder
	}
	return errors.Join(err, d.Close())
}
