//go:build unix

package dirfd

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Dir is an open folder.
type Dir struct {
	file    *os.File
	path    string
	through func() string
}

const openDir = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC

// Open opens a folder. Links in its path are followed.
func Open(path string) (*Dir, error) {
	fd, err := retry(func() (int, error) { return unix.Open(path, openDir, 0) })
	if errors.Is(err, unix.EACCES) && openSearch != 0 { // it may be entered and written to all the same
		fd, err = retry(func() (int, error) { return unix.Open(path, openSearch|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) })
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return newDir(fd, path), nil
}

func newDir(fd int, path string) *Dir {
	d := &Dir{file: os.NewFile(uintptr(fd), path), path: path}
	d.through = sync.OnceValue(d.findThrough)
	return d
}

func (d *Dir) fd() int { return int(d.file.Fd()) }

// Close closes the handle.
func (d *Dir) Close() error { return d.file.Close() }

// Through returns a path that leads through the handle: whoever renames the
// folder, or puts a link in its place, does not divert it. It serves libraries
// that open files by path, as long as the folder is open. Where the system has
// no such path, it is the folder's own.
func (d *Dir) Through() string { return d.through() }

func (d *Dir) findThrough() string {
	through := "/proc/self/fd/" + strconv.Itoa(d.fd())
	here, err := d.file.Stat()
	if err != nil {
		return d.path
	}
	if there, err := os.Stat(through); err != nil || !os.SameFile(here, there) {
		return d.path
	}
	return through
}

// Dup opens the same folder once more.
func (d *Dir) Dup() (*Dir, error) {
	fd, err := retry(func() (int, error) { return unix.Openat(d.fd(), ".", openDir, 0) })
	if errors.Is(err, unix.EACCES) && openSearch != 0 {
		fd, err = retry(func() (int, error) { return unix.Openat(d.fd(), ".", openSearch|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) })
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: d.path, Err: err}
	}
	return newDir(fd, d.path), nil
}

// OpenDir opens a folder in d, if it is one and not a link to one.
func (d *Dir) OpenDir(name string) (*Dir, error) { return d.openDir(name, false) }

// Enter is OpenDir, but for a folder at which something is mounted.
func (d *Dir) Enter(name string) (*Dir, error) { return d.openDir(name, true) }

func (d *Dir) openDir(name string, sameMount bool) (*Dir, error) {
	if err := checkName(name); err != nil {
		return nil, d.fail("open", name, err)
	}
	fd, err := retry(func() (int, error) { return openBelow(d.fd(), name, openDir, 0, sameMount) })
	if errors.Is(err, unix.EACCES) && openSearch != 0 {
		fd, err = retry(func() (int, error) {
			return openBelow(d.fd(), name, openSearch|unix.O_DIRECTORY|unix.O_CLOEXEC, 0, sameMount)
		})
	}
	if err != nil {
		return nil, d.fail("open", name, d.explain(name, err))
	}
	return newDir(fd, d.join(name)), nil
}

// explain names what the system's answer means here.
func (d *Dir) explain(name string, err error) error {
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.EMLINK): // the latter on FreeBSD
		return ErrLink
	case errors.Is(err, unix.ENOTDIR):
		if info, statErr := d.Lstat(name); statErr == nil && info.Mode&fs.ModeSymlink != 0 {
			return ErrLink
		}
	case errors.Is(err, unix.EXDEV):
		return ErrMount
	case errors.Is(err, unix.ENXIO): // a pipe without a reader, a socket
		return ErrNotRegular
	}
	return err
}

// Mkdir makes a folder in d.
func (d *Dir) Mkdir(name string, perm fs.FileMode) error {
	if err := checkName(name); err != nil {
		return d.fail("mkdir", name, err)
	}
	return d.fail("mkdir", name, retryErr(func() error { return unix.Mkdirat(d.fd(), name, uint32(perm.Perm())) }))
}

// OpenFile opens a regular file in d. It follows no link and waits for nobody
// at the other end of a pipe.
func (d *Dir) OpenFile(name string, flags int, perm fs.FileMode) (*os.File, error) {
	if err := checkName(name); err != nil {
		return nil, d.fail("open", name, err)
	}
	fd, err := retry(func() (int, error) {
		return openBelow(d.fd(), name, flags|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, uint32(perm.Perm()), false)
	})
	if err != nil {
		return nil, d.fail("open", name, d.explain(name, err))
	}
	var st unix.Stat_t
	err = retryErr(func() error { return unix.Fstat(fd, &st) })
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = ErrNotRegular
	}
	if err == nil {
		err = unix.SetNonblock(fd, false)
	}
	if err != nil {
		return nil, errors.Join(d.fail("open", name, err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), d.join(name)), nil
}

// Lstat describes an entry of d, a link as a link.
func (d *Dir) Lstat(name string) (Info, error) {
	if err := checkName(name); err != nil {
		return Info{}, d.fail("lstat", name, err)
	}
	var st unix.Stat_t
	err := retryErr(func() error { return unix.Fstatat(d.fd(), name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	return infoOf(&st), d.fail("lstat", name, err)
}

// Stat describes the folder itself.
func (d *Dir) Stat() (Info, error) {
	info, err := Describe(d.file)
	return info, err
}

// Describe describes an open file.
func Describe(f *os.File) (Info, error) {
	var st unix.Stat_t
	if err := retryErr(func() error { return unix.Fstat(int(f.Fd()), &st) }); err != nil {
		return Info{}, &fs.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return infoOf(&st), nil
}

func infoOf(st *unix.Stat_t) Info {
	sec, nsec := st.Mtim.Unix()
	return Info{
		Mode: modeOf(uint32(st.Mode)), UID: int(st.Uid), Links: uint64(st.Nlink), Size: st.Size, Modified: time.Unix(sec, nsec),
		device: uint64(st.Dev), inode: st.Ino,
	}
}

// modeOf returns the permissions and the type of a file.
func modeOf(mode uint32) fs.FileMode {
	m := fs.FileMode(mode & 0o777)
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		m |= fs.ModeDir
	case unix.S_IFLNK:
		m |= fs.ModeSymlink
	case unix.S_IFIFO:
		m |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		m |= fs.ModeSocket
	case unix.S_IFCHR:
		m |= fs.ModeDevice | fs.ModeCharDevice
	case unix.S_IFBLK:
		m |= fs.ModeDevice
	default:
		m |= fs.ModeIrregular
	}
	return m
}

// Names returns the names in the folder.
func (d *Dir) Names() ([]string, error) {
	// A handle of its own begins at the first name.
	fd, err := retry(func() (int, error) { return unix.Openat(d.fd(), ".", openDir, 0) })
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: d.path, Err: err}
	}
	f := os.NewFile(uintptr(fd), d.path)
	names, err := f.Readdirnames(-1)
	return names, errors.Join(err, f.Close())
}

// Unlink removes an entry that is not a folder.
func (d *Dir) Unlink(name string) error {
	if err := checkName(name); err != nil {
		return d.fail("remove", name, err)
	}
	return d.fail("remove", name, retryErr(func() error { return unix.Unlinkat(d.fd(), name, 0) }))
}

// Rmdir removes an empty folder.
func (d *Dir) Rmdir(name string) error {
	if err := checkName(name); err != nil {
		return d.fail("remove", name, err)
	}
	return d.fail("remove", name, retryErr(func() error { return unix.Unlinkat(d.fd(), name, unix.AT_REMOVEDIR) }))
}

// Rename gives an entry of d another name in to, in the place of whatever file
// has that.
func (d *Dir) Rename(name string, to *Dir, newName string) error {
	if err := errors.Join(checkName(name), checkName(newName)); err != nil {
		return d.fail("rename", name, err)
	}
	err := retryErr(func() error { return unix.Renameat(d.fd(), name, to.fd(), newName) })
	if err != nil {
		return &os.LinkError{Op: "rename", Old: d.join(name), New: to.join(newName), Err: err}
	}
	return nil
}

// RenameNew is Rename to a name that does not exist.
func (d *Dir) RenameNew(name string, to *Dir, newName string) error {
	if err := errors.Join(checkName(name), checkName(newName)); err != nil {
		return d.fail("rename", name, err)
	}
	err := retryErr(func() error { return renameNew(d.fd(), name, to.fd(), newName) })
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		if _, statErr := to.Lstat(newName); !errors.Is(statErr, fs.ErrNotExist) {
			return &os.LinkError{Op: "rename", Old: d.join(name), New: to.join(newName), Err: errors.Join(fs.ErrExist, notExistIsFine(statErr))}
		}
		return d.Rename(name, to, newName)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: d.join(name), New: to.join(newName), Err: err}
	}
	return nil
}

// Chown gives the folder itself to an owner.
func (d *Dir) Chown(uid, gid int) error {
	err := retryErr(func() error { return unix.Fchown(d.fd(), uid, gid) })
	if err != nil {
		return &fs.PathError{Op: "chown", Path: d.path, Err: err}
	}
	return nil
}

// Sync makes new names and removals survive a power cut. Filesystems that
// cannot sync a folder, and folders that may not be read, are passed over.
func (d *Dir) Sync() error {
	err := retryErr(func() error { return unix.Fsync(d.fd()) })
	switch {
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.EBADF), errors.Is(err, errors.ErrUnsupported), errors.Is(err, fs.ErrPermission):
		return nil
	case err != nil:
		return &fs.PathError{Op: "sync", Path: d.path, Err: err}
	}
	return nil
}

// retry repeats a call that a signal interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

func retryErr(call func() error) error {
	_, err := retry(func() (int, error) { return 0, call() })
	return err
}
