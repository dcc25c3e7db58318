package store

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/etcdkit/etcdkit/internal/dirfd"
	"github.com/etcdkit/etcdkit/internal/wholefile"
)

// place is where the file of a key is: its name in an open folder. It is reached
// without following a link below the root, because whoever can write to a
// repository could make us write, rename and delete elsewhere.
type place struct {
	*dirfd.Dir
	name string
	made bool // the folder was not there before
}

// place opens the folder of a key. With create it is made if it is missing.
func (f *Folder) place(key string, create bool) (p place, err error) {
	if create {
		if p.made, err = makeDir(f.root); err != nil {
			return p, err
		}
	}
	if p.Dir, err = dirfd.Open(f.root); err != nil {
		return p, err
	}
	folders, name := path.Split(key)
	p.name = name
	for part := range strings.SplitSeq(strings.Trim(folders, "/"), "/") {
		if part == "" {
			continue
		}
		next, err := p.OpenDir(part)
		if create && errors.Is(err, fs.ErrNotExist) {
			p.made = true
			next, err = p.mkdir(part)
		}
		if err = errors.Join(err, p.Close()); err != nil {
			return place{}, err
		}
		p.Dir = next
	}
	return p, nil
}

// mkdir makes a folder that lasts, unless somebody else has made it meanwhile.
func (p place) mkdir(name string) (*dirfd.Dir, error) {
	if err := p.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if err := p.Sync(); err != nil {
		return nil, err
	}
	return p.OpenDir(name)
}

// remove removes the file. What is behind a link is somebody's own arrangement,
// and stays.
func (p place) remove() error {
	info, err := p.Lstat(p.name)
	if err == nil && info.Mode&fs.ModeSymlink != 0 {
		err = &fs.PathError{Op: "remove", Path: filepath.Join(p.Path(), p.name), Err: dirfd.ErrLink}
	}
	if err == nil {
		err = p.Unlink(p.name)
	}
	return err
}

// makeDir makes a folder and those above it, and the names of the new ones last.
func makeDir(dir string) (made bool, err error) {
	missing := []string{}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			break
		}
		missing = append(missing, at)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, err
	}
	for _, d := range missing {
		if err := wholefile.SyncDir(filepath.Dir(d)); err != nil {
			return true, err
		}
	}
	return len(missing) > 0, nil
}
