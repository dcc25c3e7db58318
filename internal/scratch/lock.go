package scratch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/etcdkit/etcdkit/internal/dirfd"
)

var (
	// ErrLocked says that a living process holds a lock.
	ErrLocked = errors.New("it is in use by another process")
	// ErrUnsafe says that something may have been made or changed by somebody
	// else than the caller.
	ErrUnsafe = errors.New("it cannot be trusted")
	// ErrOwner is the case of ErrUnsafe in which somebody else is the owner.
	ErrOwner = fmt.Errorf("%w: it belongs to another user", ErrUnsafe)
)

// newSuffix ends the name of a locked file on its way to its name.
const newSuffix = ".new"

// renamesOpenFiles tells whether the system renames and removes files that are
// open.
const renamesOpenFiles = runtime.GOOS != "windows"

// Lock is a locked file.
type Lock struct {
	*os.File
	dir  *dirfd.Dir
	name string
}

// Open locks a file of the caller in dir. It fails with ErrLocked if that is
// locked, and with an error of its own if it is not a regular file of the
// caller's with one name.
func Open(dir *dirfd.Dir, name string) (*Lock, error) {
	return open(dir, name, os.O_RDWR, func(info dirfd.Info) error {
		if info.Links != 1 {
			return fmt.Errorf("%w: %s has %d names", ErrUnsafe, name, info.Links)
		}
		return checkOwner(info)
	})
}

// OpenOrCreate locks a regular file of any owner, and makes one that does not
// exist. The lock says nothing about who made what is beside it.
func OpenOrCreate(dir *dirfd.Dir, name string) (*Lock, error) {
	return open(dir, name, os.O_RDWR|os.O_CREATE, func(dirfd.Info) error { return nil })
}

func open(dir *dirfd.Dir, name string, flags int, check func(dirfd.Info) error) (_ *Lock, err error) {
	file, err := dir.OpenFile(name, flags, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = file.Close()
		}
	}()
	opened, err := dirfd.Describe(file)
	if err != nil {
		return nil, err
	}
	if opened.Links == 0 { // removed since, by its holder
		return nil, fmt.Errorf("%w: %w", ErrLocked, fs.ErrNotExist)
	}
	if err := check(opened); err != nil {
		return nil, err
	}
	if err := tryLock(file); err != nil {
		return nil, err
	}
	// Whoever held it may have removed it before the lock was free: then it is
	// a lock on nothing.
	named, err := dir.Lstat(name)
	if err == nil && !named.Same(opened) {
		err = fmt.Errorf("%w: %s was replaced", ErrLocked, name)
	}
	if err != nil {
		return nil, err
	}
	return &Lock{File: file, dir: dir, name: name}, nil
}

// Create makes a file that is locked, and has its content, before it has its
// name: nobody sees it in between.
func Create(dir *dirfd.Dir, name string, content []byte) (_ *Lock, err error) {
	temp := "." + name + "." + random() + newSuffix
	if !renamesOpenFiles {
		temp = name
	}
	file, err := dir.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close(), dir.RemoveAll(temp))
		}
	}()
	if err := tryLock(file); err != nil {
		return nil, err
	}
	if _, err := file.Write(content); err != nil {
		return nil, err
	}
	if temp != name {
		if err := dir.RenameNew(temp, dir, name); err != nil {
			return nil, err
		}
	}
	return &Lock{File: file, dir: dir, name: name}, nil
}

// SweepNew removes the files that dead processes left in dir on their way to
// their names.
func SweepNew(dir *dirfd.Dir) {
	names, _ := dir.Names() // tried again next time
	for _, name := range names {
		info, err := dir.Lstat(name)
		if err != nil || !strings.HasPrefix(name, ".") || !strings.HasSuffix(name, newSuffix) || time.Since(info.Modified) < makeTime {
			continue
		}
		if lock, err := Open(dir, name); err == nil {
			_ = lock.Remove()
		}
	}
}

// Remove removes the file, if its name is still its own, and then the lock.
func (l *Lock) Remove() error {
	own, err := dirfd.Describe(l.File)
	if !renamesOpenFiles {
		err = errors.Join(err, l.Close())
	}
	if err == nil {
		var named dirfd.Info
		if named, err = l.dir.Lstat(l.name); err == nil && named.Same(own) {
			err = l.dir.Unlink(l.name)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if renamesOpenFiles {
		err = errors.Join(err, l.Close())
	}
	return err
}

// checkOwner refuses what somebody else owns or can write to.
func checkOwner(info dirfd.Info) error {
	if info.UID != os.Geteuid() {
		return fmt.Errorf("%w (uid %d, not %d)", ErrOwner, info.UID, os.Geteuid())
	}
	if info.Mode.Perm()&0o022 != 0 {
		return fmt.Errorf("%w: others can write to it", ErrUnsafe)
	}
	return nil
}
