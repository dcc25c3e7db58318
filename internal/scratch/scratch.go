// Package scratch makes folders and files that are locked for as long as their
// process lives, and removes what dead processes left behind.
//
// The folder around them may belong to somebody else. A folder is locked before
// a sweeper can tell it from a dead one, everything is reached through handles
// (package dirfd), and only what the caller made is swept: the folder and its
// marker belong to the caller, nobody else can write to them, and the marker is
// a regular file with one name.
package scratch

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/etcdkit/etcdkit/internal/dirfd"
)

const (
	// private is the mode of a folder for its owner alone.
	private = 0o700
	// newMarker is the name of a marker that is not locked yet.
	newMarker = "new"
	// makeTries bounds the names that are tried for a new folder.
	makeTries = 8
	// makeTime is far longer than it takes to make a folder: one without a
	// marker that is older was left by a process that died on the way.
	makeTime = time.Hour
)

// Kind is a kind of scratch folders.
type Kind struct {
	Prefix string // of the folders' names
	Marker string // name of the file in each that is locked while its process lives
}

// Folder is a locked folder, for its owner alone.
type Folder struct {
	parent *dirfd.Dir
	dir    *dirfd.Dir
	name   string
	lock   *Lock
}

// New makes a folder in parent, "" means the system's folder for temporary
// files.
func (k Kind) New(parent string) (_ *Folder, err error) {
	if parent == "" {
		parent = os.TempDir()
	}
	p, err := dirfd.Open(parent)
	if err != nil {
		return nil, err
	}
	f, err := k.newIn(p)
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return f, nil
}

// NewIn makes a folder in parent.
func (k Kind) NewIn(parent *dirfd.Dir) (*Folder, error) {
	p, err := parent.Dup()
	if err != nil {
		return nil, err
	}
	f, err := k.newIn(p)
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return f, nil
}

// newIn makes a folder that takes over the handle of its parent.
func (k Kind) newIn(parent *dirfd.Dir) (*Folder, error) {
	for try := 1; ; try++ {
		f := &Folder{parent: parent, name: k.Prefix + random()}
		err := f.make(k.Marker)
		if err == nil {
			return f, nil
		}
		// A name that exists, or a folder that a sweeper took for dead: on a
		// machine that slept for an hour in between.
		again := errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrLocked)
		if !again || try == makeTries {
			return nil, err
		}
	}
}

func random() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails, by its contract
	return hex.EncodeToString(b)
}

// make makes the folder with its marker.
func (f *Folder) make(marker string) (err error) {
	if err := f.parent.Mkdir(f.name, private); err != nil {
		return err
	}
	if f.dir, err = f.parent.Enter(f.name); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.dir.Close()
			_ = f.parent.Rmdir(f.name) // stays if there is something in it
		}
	}()
	// The marker has its name only when it is locked, so that no sweeper sees it
	// unlocked.
	name := newMarker
	if !renamesOpenFiles {
		name = marker
	}
	file, err := f.dir.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close(), f.dir.RemoveAll(name))
		}
	}()
	if err := f.checkOwn(file); err != nil {
		return err
	}
	if err := tryLock(file); err != nil {
		return err
	}
	if name != marker {
		if err := f.dir.Rename(name, f.dir, marker); err != nil {
			return err
		}
	}
	f.lock = &Lock{File: file, dir: f.dir, name: marker}
	return nil
}

// checkOwn makes sure that the folder is the one that was made, and not one
// that somebody put in its place: its owner is whoever owns a new file in it.
func (f *Folder) checkOwn(file *os.File) error {
	dir, err := f.dir.Stat()
	if err != nil {
		return err
	}
	made, err := dirfd.Describe(file)
	if err != nil {
		return err
	}
	if dir.UID != made.UID || dir.Mode.Perm()&^private != 0 {
		return fmt.Errorf("%w: %s was replaced while it was made", ErrUnsafe, f.Path())
	}
	return nil
}

// Path returns the folder's path, for messages.
func (f *Folder) Path() string { return f.dir.Path() }

// Name returns the folder's name in its parent.
func (f *Folder) Name() string { return f.name }

// Dir returns the folder's handle, which is open until Remove.
func (f *Folder) Dir() *dirfd.Dir { return f.dir }

// Through returns a path that leads into the folder whatever happens to its
// name, until Remove.
func (f *Folder) Through() string { return f.dir.Through() }

// Remove removes the folder and what is in it. Open files live on, nameless. It
// may be called again: after a failure, to try once more.
func (f *Folder) Remove() error {
	if f.lock == nil {
		return nil
	}
	// The marker goes last: what is left when this is cut short is still marked.
	if err := f.dir.RemoveContents(f.lock.name); err != nil {
		return err
	}
	err := f.lock.Remove()
	err = errors.Join(err, f.rmdir(), f.dir.Close(), f.parent.Close())
	f.lock = nil
	return err
}

// rmdir removes the folder's name, if it is still its own.
func (f *Folder) rmdir() error {
	own, err := f.dir.Stat()
	if err != nil {
		return err
	}
	named, err := f.parent.Lstat(f.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !own.Same(named) {
		return fmt.Errorf("%w: %s was replaced; what it held is removed", ErrUnsafe, f.Path())
	}
	if err := f.parent.Rmdir(f.name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Left is something that a sweep left alone, and why.
type Left struct {
	Path string
	Err  error
}

func (l Left) String() string { return fmt.Sprintf("left %s alone: %v", l.Path, l.Err) }

// Sweep removes the folders that dead processes of the caller left in parent.
// Folders in use stay. Those that are not certainly the caller's own stay too,
// and are returned: but not those of other users in the folder for temporary
// files, which is for all.
func (k Kind) Sweep(parent string) ([]Left, error) {
	shared := parent == ""
	if shared {
		parent = os.TempDir()
	}
	p, err := dirfd.Open(parent)
	if err != nil {
		return nil, err
	}
	left, err := k.SweepIn(p)
	if shared {
		left = slices.DeleteFunc(left, func(l Left) bool { return errors.Is(l.Err, ErrOwner) })
	}
	return left, errors.Join(err, p.Close())
}

// SweepIn is Sweep in an open folder.
func (k Kind) SweepIn(parent *dirfd.Dir) (left []Left, err error) {
	names, err := parent.Names()
	if errors.Is(err, fs.ErrPermission) { // it may be written to all the same
		return []Left{{Path: parent.Path(), Err: err}}, nil
	}
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if !strings.HasPrefix(name, k.Prefix) {
			continue
		}
		switch why := k.sweepOne(parent, name); {
		case why == nil, errors.Is(why, ErrLocked), errors.Is(why, fs.ErrNotExist):
		default:
			left = append(left, Left{Path: parent.Path() + string(os.PathSeparator) + name, Err: why})
		}
	}
	return left, nil
}

// sweepOne removes a folder if it is the caller's and its process is dead.
func (k Kind) sweepOne(parent *dirfd.Dir, name string) error {
	info, err := parent.Lstat(name)
	if err != nil {
		return err
	}
	if !info.Mode.IsDir() {
		return errNotFolder(info.Mode)
	}
	dir, err := parent.Enter(name)
	if err != nil {
		return err
	}
	f := &Folder{dir: dir, name: name}
	keep := false
	defer func() {
		if !keep {
			_ = dir.Close()
		}
	}()
	if info, err = dir.Stat(); err != nil {
		return err
	}
	if err := checkOwner(info); err != nil {
		return err
	}
	lock, err := Open(dir, k.Marker)
	if errors.Is(err, fs.ErrNotExist) {
		return f.sweepUnmarked(parent, info)
	}
	if err != nil {
		return err
	}
	f.lock = lock
	if f.parent, err = parent.Dup(); err != nil {
		return errors.Join(err, lock.Close())
	}
	keep = true
	if err := f.Remove(); err != nil {
		return errors.Join(err, lock.Close(), dir.Close(), f.parent.Close())
	}
	return nil
}

// sweepUnmarked removes a folder whose process died before it had a marker, and
// nothing else.
func (f *Folder) sweepUnmarked(parent *dirfd.Dir, info dirfd.Info) error {
	if time.Since(info.Modified) < makeTime {
		return nil // it is being made
	}
	if lock, err := Open(f.dir, newMarker); err == nil {
		if err := errors.Join(f.dir.Unlink(newMarker), lock.Close()); err != nil {
			return err
		}
	}
	if parent.Rmdir(f.name) != nil { // only if it is empty
		return fmt.Errorf("%w: it has no marker that tells whose it is", ErrUnsafe)
	}
	return nil
}

func errNotFolder(mode fs.FileMode) error {
	if mode&fs.ModeSymlink != 0 {
		return dirfd.ErrLink
	}
	return fmt.Errorf("%w: it is not a folder", ErrUnsafe)
}
