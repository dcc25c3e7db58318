package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// errDangling tells of a symbolic link to something that is not there, such as a
// file on a disk that is not mounted. Nobody knows whether that still exists.
var errDangling = errors.New("it is a symbolic link to something that is not there")

// dangling tells a link whose target is missing from a name that is not there.
func dangling(name string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, lstatErr := os.Lstat(name); lstatErr == nil {
		return errDangling
	}
	return err
}

// Stat implements Store.
func (f *Folder) Stat(_ context.Context, key string) (Object, error) {
	name := f.path(key)
	info, err := os.Stat(name)
	if err = dangling(name, err); errors.Is(err, fs.ErrNotExist) {
		// Without the folder, it is the disk that is not there.
		if _, rootErr := os.Stat(f.root); rootErr != nil {
			return Object{}, fmt.Errorf("look at %s: %w: the folder %s is not there", name, ErrUnreachable, f.root)
		}
	}
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		return Object{}, explainFile("look at "+name, err)
	}
	return Object{Key: key, Size: info.Size(), Modified: arrival(info)}, nil
}

// Now implements Store: it is the time that a file gets which is written now.
// A folder may be on another machine, with a clock of its own.
func (f *Folder) Now(context.Context) (now time.Time, err error) {
	defer func() { err = explainFile("ask "+f.root+" for its time", err) }()
	id := make([]byte, 4)
	_, _ = rand.Read(id) // never fails, by its contract
	at, err := f.place(tempName(clockKey, hex.EncodeToString(id)), false)
	if err != nil {
		return now, err
	}
	defer at.Close()
	file, err := at.OpenFile(at.name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return now, err
	}
	defer func() { err = errors.Join(err, file.Close(), at.remove()) }()
	if _, err := file.Write([]byte{0}); err != nil {
		return now, err
	}
	info, err := file.Stat()
	if err != nil {
		return now, err
	}
	return info.ModTime(), nil
}

// lostAndFound belongs to the file system at the top of a disk, and only root may
// read it.
const lostAndFound = "lost+found"

// walk calls fn for every regular file whose key begins with prefix, through
// symbolic links. A root that does not exist is empty.
func (f *Folder) walk(ctx context.Context, prefix string, fn func(key string, info fs.FileInfo)) error {
	w := &walker{folder: f, ctx: ctx, prefix: prefix, found: fn}
	dir := path.Dir(prefix + "x")
	if dir == "." {
		dir = ""
	}
	return explainFile("list "+f.root, w.visit(dir, nil))
}

type walker struct {
	folder *Folder
	ctx    context.Context // of the one walk
	prefix string
	found  func(key string, info fs.FileInfo)
}

// visit walks the folder at key; above are the folders that lead to it.
func (w *walker) visit(key string, above []fs.FileInfo) error {
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	name := w.folder.path(key)
	here, err := os.Stat(name)
	if err == nil {
		var entries []fs.DirEntry
		entries, err = os.ReadDir(name)
		for _, entry := range entries {
			if err := w.enter(path.Join(key, entry.Name()), entry, append(above, here)); err != nil {
				return err
			}
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist): // gone since it was listed, or never there
		return nil
	case errors.Is(err, fs.ErrPermission) && path.Base(key) == lostAndFound:
		return nil
	}
	return err
}

// enter looks at one entry of a folder. A link whose target is missing counts as
// a file: it is known to be there, and reading it tells what is wrong.
func (w *walker) enter(key string, entry fs.DirEntry, above []fs.FileInfo) error {
	info, err := entry.Info()
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if target, statErr := os.Stat(w.folder.path(key)); statErr == nil {
			info = target
		} else if !errors.Is(statErr, fs.ErrNotExist) {
			err = statErr
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		below := filepath.ToSlash(key) + "/"
		if !strings.HasPrefix(below, w.prefix) && !strings.HasPrefix(w.prefix, below) {
			return nil
		}
		for _, a := range above {
			if os.SameFile(a, info) { // a link back up
				return nil
			}
		}
		return w.visit(key, above)
	case info.Mode().IsRegular() || info.Mode()&fs.ModeSymlink != 0:
		if key := keyOf(key); strings.HasPrefix(key, w.prefix) {
			w.found(key, info)
		}
	}
	return nil
}
