package dirfd

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Dir is a folder. Windows has no sticky folders for temporary files and lets
// few users make links, so that here a folder is its absolute path: links are
// looked for, but not held off.
type Dir struct{ path string }

// Open opens a folder. Links in its path are followed.
func Open(path string) (*Dir, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	if resolved, err = filepath.Abs(resolved); err != nil {
		return nil, err
	}
	info, err := os.Stat(resolved)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("it is not a folder")}
	}
	return &Dir{path: resolved}, nil
}

// Close does nothing.
func (d *Dir) Close() error { return nil }

// Through returns the folder's path.
func (d *Dir) Through() string { return d.path }

// Dup opens the same folder once more.
func (d *Dir) Dup() (*Dir, error) { return &Dir{path: d.path}, nil }

// OpenDir opens a folder in d, if it is one and not a link to one.
func (d *Dir) OpenDir(name string) (*Dir, error) {
	info, err := d.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case info.Mode&fs.ModeSymlink != 0:
		return nil, d.fail("open", name, ErrLink)
	case info.Mode&fs.ModeIrregular != 0:
		return nil, d.fail("open", name, ErrMount)
	case !info.Mode.IsDir():
		return nil, d.fail("open", name, errors.New("it is not a folder"))
	}
	return &Dir{path: d.join(name)}, nil
}

// Enter is OpenDir: what is mounted at a folder is a link on Windows.
func (d *Dir) Enter(name string) (*Dir, error) { return d.OpenDir(name) }

// Mkdir makes a folder in d.
func (d *Dir) Mkdir(name string, perm fs.FileMode) error {
	if err := checkName(name); err != nil {
		return d.fail("mkdir", name, err)
	}
	return os.Mkdir(d.join(name), perm)
}

// OpenFile opens a regular file in d, but through no link.
func (d *Dir) OpenFile(name string, flags int, perm fs.FileMode) (*os.File, error) {
	info, err := d.Lstat(name)
	if err == nil && !info.Mode.IsRegular() {
		return nil, d.fail("open", name, ErrNotRegular)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(d.join(name), flags, perm)
}

// Lstat describes an entry of d, a link as a link.
func (d *Dir) Lstat(name string) (Info, error) {
	if err := checkName(name); err != nil {
		return Info{}, d.fail("lstat", name, err)
	}
	info, err := os.Lstat(d.join(name))
	if err != nil {
		return Info{}, err
	}
	return infoOf(info), nil
}

// Stat describes the folder itself.
func (d *Dir) Stat() (Info, error) {
	info, err := os.Stat(d.path)
	if err != nil {
		return Info{}, err
	}
	return infoOf(info), nil
}

// Describe describes an open file.
func Describe(f *os.File) (Info, error) {
	info, err := f.Stat()
	if err != nil {
		return Info{}, err
	}
	return infoOf(info), nil
}

// infoOf leaves out what Windows does not tell: the owner, other links, and
// which file it is.
func infoOf(info fs.FileInfo) Info {
	mode := info.Mode()
	if !mode.IsDir() {
		mode &^= 0o077
	} else {
		mode = mode&^0o777 | 0o700
	}
	return Info{Mode: mode, UID: -1, Links: 1, Size: info.Size(), Modified: info.ModTime()}
}

// Names returns the names in the folder.
func (d *Dir) Names() ([]string, error) {
	f, err := os.Open(d.path)
	if err != nil {
		return nil, err
	}
	names, err := f.Readdirnames(-1)
	return names, errors.Join(err, f.Close())
}

// Unlink removes an entry that is not a folder.
func (d *Dir) Unlink(name string) error {
	if err := checkName(name); err != nil {
		return d.fail("remove", name, err)
	}
	return os.Remove(d.join(name))
}

// Rmdir removes an empty folder.
func (d *Dir) Rmdir(name string) error { return d.Unlink(name) }

// Rename gives an entry of d another name in to, in the place of whatever file
// has that.
func (d *Dir) Rename(name string, to *Dir, newName string) error {
	if err := errors.Join(checkName(name), checkName(newName)); err != nil {
		return d.fail("rename", name, err)
	}
	return os.Rename(d.join(name), to.join(newName))
}

// RenameNew is Rename to a name that does not exist.
func (d *Dir) RenameNew(name string, to *Dir, newName string) error {
	if _, err := to.Lstat(newName); !errors.Is(err, fs.ErrNotExist) {
		return &os.LinkError{Op: "rename", Old: d.join(name), New: to.join(newName), Err: errors.Join(fs.ErrExist, err)}
	}
	return d.Rename(name, to, newName)
}

// Chown gives the folder itself to an owner.
func (d *Dir) Chown(uid, gid int) error { return os.Chown(d.path, uid, gid) }

// Sync does nothing: Windows cannot sync a folder.
func (d *Dir) Sync() error { return nil }
