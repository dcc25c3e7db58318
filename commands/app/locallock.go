package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/etcdkit/etcdkit/health"
	"github.com/etcdkit/etcdkit/internal/dirfd"
	"github.com/etcdkit/etcdkit/internal/scratch"
)

// fileLock is a maintenance lock on this host alone, for when etcd grants no
// lease.
type fileLock struct {
	file *scratch.Lock
	dir  *dirfd.Dir
}

const localLockFile = "maintenance.lock"

// localLockFree returns an error if another process on this host holds the
// local lock. It creates nothing.
func (a *App) localLockFree() error {
	dir := a.StateDir()
	if _, err := os.Lstat(filepath.Join(dir, localLockFile)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	lock, err := openLocalLock(dir)
	if err != nil {
		return err
	}
	return lock.close()
}

func (a *App) localLock() (health.Lock, error) {
	dir := a.StateDir()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("take local lock: %w", err)
	}
	lock, err := openLocalLock(dir)
	if err != nil {
		return nil, err
	}
	a.Warn("etcd grants no lease, so only this host is kept from a second maintenance")
	return lock, nil
}

func openLocalLock(dir string) (*fileLock, error) {
	at, err := dirfd.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("take local lock: %w", err)
	}
	path := filepath.Join(dir, localLockFile)
	file, err := scratch.OpenOrCreate(at, localLockFile)
	switch {
	case errors.Is(err, scratch.ErrLocked):
		return nil, errors.Join(fmt.Errorf("%w: on this host, see %s", health.ErrLocked, path), at.Close())
	case err != nil:
		return nil, errors.Join(fmt.Errorf("take local lock %s: %w", path, err), at.Close())
	}
	return &fileLock{file: file, dir: at}, nil
}

// Lost never happens: the lock lives as long as the process.
func (*fileLock) Lost() <-chan struct{} { return nil }

// Release gives the lock back. The file stays, for removing it could take it
// from under the next holder.
func (l *fileLock) Release(context.Context) error { return l.close() }

func (l *fileLock) close() error {
	return errors.Join(l.file.Close(), l.dir.Close())
}
