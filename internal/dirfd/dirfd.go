// Package dirfd works below a folder that other users may be able to write to.
//
// The path of the folder is resolved once, links included. From then on the
// folder is held by a handle, and what is below it is reached one name at a
// time, never through a symbolic link: whoever renames or replaces parts of the
// path meanwhile changes nothing for the holder.
package dirfd

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

var (
	// ErrLink says that a name is a symbolic link where none is followed.
	ErrLink = errors.New("it is a symbolic link")
	// ErrNotRegular says that a name is not that of a regular file.
	ErrNotRegular = errors.New("it is not a regular file")
	// ErrMount says that something is mounted at a name.
	ErrMount = errors.New("another filesystem is mounted there")
	// ErrName says that a name has more than one component.
	ErrName = errors.New("it is not the name of an entry of a folder")
)

// Info is what the filesystem says about an entry of a folder, or about an open
// file.
type Info struct {
	Mode     fs.FileMode
	UID      int // -1 where files have no owner
	Links    uint64
	Size     int64
	Modified time.Time

	device, inode uint64
}

// Same reports whether both are the same file.
func (i Info) Same(other Info) bool { return i.device == other.device && i.inode == other.inode }

// Path returns the path by which the folder was opened, for messages.
func (d *Dir) Path() string { return d.path }

// join names an entry in messages.
func (d *Dir) join(name string) string { return filepath.Join(d.path, name) }

// fail returns err as a failure of an operation on an entry.
func (d *Dir) fail(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: d.join(name), Err: err}
}

// checkName refuses what is more than the name of an entry.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, `/`+string(filepath.Separator)) {
		return ErrName
	}
	return nil
}

// Walk returns the folder at a relative path below d, opened one name at a time
// without following a link. The caller closes it, d itself included.
func (d *Dir) Walk(rel string) (*Dir, error) {
	at, err := d.Dup()
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(filepath.ToSlash(filepath.Clean(rel)), "/") {
		if name == "." {
			continue
		}
		next, err := at.OpenDir(name)
		if err = errors.Join(err, at.Close()); err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

// RemoveFolder removes an empty folder by its path: nothing else that may have
// that path by now.
func RemoveFolder(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	parent, err := Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(parent.Rmdir(filepath.Base(path)), parent.Close())
}

// removeTries bounds the passes over a folder in which somebody goes on making
// files while it is removed.
const removeTries = 3

// RemoveAll removes an entry, and if it is a folder everything below it. Links
// are removed, not followed, and what is mounted below stays. A name that does
// not exist is not an error.
func (d *Dir) RemoveAll(name string) error {
	info, err := d.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.Mode.IsDir() {
		return notExistIsFine(d.Unlink(name))
	}
	for try := 1; ; try++ {
		err = d.removeDir(name)
		if try == removeTries || !errors.Is(err, syscall.ENOTEMPTY) {
			return notExistIsFine(err)
		}
	}
}

func (d *Dir) removeDir(name string) error {
	sub, err := d.Enter(name)
	if err != nil {
		return err
	}
	if err := errors.Join(sub.RemoveContents(), sub.Close()); err != nil {
		return err
	}
	return d.Rmdir(name)
}

// RemoveContents removes everything in the folder, except the names to keep.
func (d *Dir) RemoveContents(keep ...string) error {
	names, err := d.Names()
	for _, name := range names {
		if !slices.Contains(keep, name) {
			err = errors.Join(err, d.RemoveAll(name))
		}
	}
	return err
}

func notExistIsFine(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Named returns err with the folder's path in the place of the path through its
// handle, which means nothing to a reader.
func (d *Dir) Named(err error) error {
	through := d.Through()
	if err == nil || through == d.path || !strings.Contains(err.Error(), through) {
		return err
	}
	return &namedError{err: err, text: strings.ReplaceAll(err.Error(), through, d.path)}
}

// namedError is an error with another text.
type namedError struct {
	err  error
	text string
}

func (e *namedError) Error() string { return e.text }
func (e *namedError) Unwrap() error { return e.err }

// String implements fmt.Stringer.
func (i Info) String() string { return fmt.Sprintf("%s, owner %d, %d links", i.Mode, i.UID, i.Links) }
