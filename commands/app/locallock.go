package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"

	"github.com/etcdkit/etcdkit/health"
)

// fileLock is a maintenance lock on this host alone, for when etcd grants no
// lease.
type fileLock struct{ file *fileutil.LockedFile }

func (a *App) localLock() (health.Lock, error) {
	dir := a.StateDir()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("take local lock: %w", err)
	}
	path := filepath.Join(dir, "maintenance.lock")
	file, err := fileutil.TryLockFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	switch {
	case errors.Is(err, fileutil.ErrLocked):
		return nil, fmt.Errorf("%w: on this host, see %s", health.ErrLocked, path)
	case err != nil:
		return nil, fmt.Errorf("take local lock: %w", err)
	}
	a.Warn("etcd grants no lease, so only this host is kept from a second maintenance")
	return fileLock{file}, nil
}

// Lost never happens: the lock lives as long as the process.
func (fileLock) Lost() <-chan struct{} { return nil }

// Release gives the lock back. The file stays, for removing it could take it
// from under the next holder.
func (l fileLock) Release(context.Context) error { return l.file.Close() }
