package store

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/etcdkit/etcdkit/internal/dirfd"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/regular"
)

// partSuffix marks a file that is still being written. Its name is a dot, the
// final name, a random id and this suffix.
const partSuffix = ".part"

// copyBuffer is large enough that a write is worth a system call.
const copyBuffer = 1 << 20

// Folder is a Store in a folder of the local file system.
type Folder struct{ root string }

// NewFolder returns the store in dir. It is created by the first Put.
func NewFolder(dir string) *Folder { return &Folder{root: filepath.Clean(dir)} }

// URL returns the folder's path, ending in a slash.
func (f *Folder) URL() string { return strings.TrimSuffix(f.root, string(filepath.Separator)) + "/" }

func (f *Folder) path(key string) string { return filepath.Join(f.root, filepath.FromSlash(key)) }

// Put implements Store: a temporary file beside the final one is written,
// synced and renamed.
func (f *Folder) Put(ctx context.Context, key string, src io.Reader, _ PutOptions) (n int64, err error) {
	final := f.path(key)
	defer func() { err = explainFile("write "+final, err) }()
	at, err := f.place(key, true)
	if err != nil {
		return 0, err
	}
	defer func() {
		err = errors.Join(err, at.Close())
		if err != nil && at.made {
			_ = dirfd.RemoveFolder(at.Path()) // made for nothing; stays if something else is in it by now
		}
	}()
	if info, err := at.Lstat(at.name); err == nil && !info.Mode.IsRegular() {
		return 0, fmt.Errorf("it exists and is not a regular file: %w", fs.ErrExist)
	}
	id := make([]byte, 4)
	_, _ = rand.Read(id) // never fails, by its contract
	temp := tempName(at.name, hex.EncodeToString(id))
	file, err := at.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	n, err = writeFile(ctx, file, src)
	if err == nil {
		err = at.Rename(temp, at.Dir, at.name)
	}
	if err != nil {
		return n, errors.Join(err, at.Unlink(temp))
	}
	return n, at.Sync()
}

// tempName is the name of an unfinished file.
func tempName(name, id string) string { return "." + name + "." + id + partSuffix }

// writeFile copies src into file, syncs and closes it.
func writeFile(ctx context.Context, file *os.File, src io.Reader) (total int64, err error) {
	defer func() { err = errors.Join(err, file.Close()) }()
	buf := make([]byte, copyBuffer)
	for {
		n, ended, err := fill(src, buf)
		if err != nil {
			return total, err
		}
		if err := ctx.Err(); err != nil {
			return total, context.Cause(ctx)
		}
		m, err := file.Write(buf[:n])
		total += int64(m)
		if err != nil {
			return total, err
		}
		if ended {
			return total, file.Sync()
		}
	}
}

// Get implements Store.
func (f *Folder) Get(_ context.Context, key string) (io.ReadCloser, int64, error) {
	name := f.path(key)
	file, err := regular.Open(name)
	if err != nil {
		return nil, 0, explainFile("read "+name, dangling(name, err))
	}
	info, err := file.Stat()
	if err != nil {
		return nil, 0, errors.Join(explainFile("read "+name, err), file.Close())
	}
	body := struct {
		io.Reader
		io.Closer
	}{bufio.NewReaderSize(file, copyBuffer), file}
	return &exact{ReadCloser: body, left: info.Size(), name: name}, info.Size(), nil
}

// List implements Store.
func (f *Folder) List(ctx context.Context, prefix string) ([]Object, error) {
	return f.ListAfter(ctx, prefix, "")
}

// ListAfter implements Store.
func (f *Folder) ListAfter(ctx context.Context, prefix, after string) ([]Object, error) {
	var objects []Object
	err := f.walk(ctx, prefix, func(key string, info fs.FileInfo) {
		if key > after && !strings.HasSuffix(key, partSuffix) {
			objects = append(objects, Object{Key: key, Size: info.Size(), Modified: arrival(info)})
		}
	})
	slices.SortFunc(objects, func(a, b Object) int { return strings.Compare(a.Key, b.Key) })
	return objects, err
}

// keyOf returns the key of a file: an unfinished one counts under the key that
// it will have, with its temporary name's end.
func keyOf(rel string) string {
	dir, name := path.Split(filepath.ToSlash(rel))
	if strings.HasSuffix(name, partSuffix) {
		name = strings.TrimPrefix(name, ".")
	}
	return dir + name
}

// Rename gives an object another key in the same folder, in the place of
// whatever has that.
func (f *Folder) Rename(from, to string) (err error) {
	defer func() { err = explainFile("write "+f.path(to), err) }()
	source, err := f.place(from, false)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := f.place(to, false)
	if err != nil {
		return err
	}
	defer target.Close()
	if err := source.Dir.Rename(source.name, target.Dir, target.name); err != nil {
		return err
	}
	return target.Sync()
}

// Delete implements Store.
func (f *Folder) Delete(_ context.Context, key string) error {
	at, err := f.place(key, false)
	if err == nil {
		defer at.Close()
		err = at.remove()
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = at.Sync()
	}
	return explainFile("delete "+f.path(key), err)
}

// Uploads implements Store: it lists the temporary files of Put.
func (f *Folder) Uploads(ctx context.Context, prefix string) ([]Upload, error) {
	var uploads []Upload
	err := f.walk(ctx, prefix, func(key string, info fs.FileInfo) {
		stem, ok := strings.CutSuffix(key, partSuffix)
		dot := strings.LastIndexByte(stem, '.')
		if ok && dot > 0 {
			uploads = append(uploads, Upload{Key: stem[:dot], ID: stem[dot+1:], Started: arrival(info)})
		}
	})
	return uploads, err
}

// Abort implements Store.
func (f *Folder) Abort(_ context.Context, u Upload) error {
	at, err := f.place(u.Key, false)
	if err == nil {
		defer at.Close()
		at.name = tempName(at.name, u.ID)
		err = at.remove()
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return explainFile("remove "+tempName(f.path(u.Key), u.ID), err)
}

// SetLock implements Store: a folder cannot protect its files.
func (f *Folder) SetLock(context.Context, string, Lock) error {
	return hint.With(fmt.Errorf("lock backup in %s: %w by a folder", f.root, errors.ErrUnsupported),
		"use an S3 bucket with object lock, or leave out --lock-until and --legal-hold")
}

// Locked implements Store: nothing in a folder is locked.
func (f *Folder) Locked(context.Context, string) (Lock, error) { return Lock{}, nil }

// Path returns the file that holds the object of a key.
func (f *Folder) Path(key string) string { return f.path(key) }
