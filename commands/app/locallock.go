package app

import (
	"context"
	"errors"
	"fmt"
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

func (a *App) localLock() (health.Lock, error) {
	dir := a.StateDir()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("take local lock: %w", err)
	}
	at, err := dirfd.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("take local lock: %w", err)
	}
	const name = "maintenance.lock"
	file, err := scratch.OpenOrCreate(at, name)
	switch {
	case errors.Is(err, scratch.ErrLocked):
		return nil, errors.Join(fmt.Errorf("%w: on this host, see %s", health.ErrLocked, filepath.Join(dir, name)), at.Close())
	case err != nil:
		return nil, errors.Join(fmt.Errorf("take local lock %s: %w", filepath.Join(dir, name), err), at.Close())
	}
	a.Warn("etcd grants no lease, so only this host is kept from a second maintenance")
	return fileLock{file: file, dir: at}, nil
}

// Lost never happens: the lock lives as long as the process.
func (fileLock) Lost() <-chan struct{} { return nil }

// Release gives the lock back. The file stays, for removing it could take it
// from under the next holder.
func (l fileLock) Release(context.Context) error {
	return errors.Join(l.file.Close(), l.dir.Close())
}
