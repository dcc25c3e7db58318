package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/mvccdb"
	"github.com/etcdkit/etcdkit/internal/regular"
)

// ErrLocked says that another process holds a database file for longer than
// the wait.
var ErrLocked = errors.New("the file is locked")

// lockPoll is how often a lock is tried again.
const lockPoll = 50 * time.Millisecond

// File is a database file opened for looking inside. Nothing in it ever
// changes the file.
type File struct {
	*mvccdb.DB
	Path    string
	DataDir string // where the file is that of a data directory
	Size    int64

	f *os.File
}

// OpenFile opens a snapshot file or, given a data directory, the database in
// it. A file that a running etcd holds is waited for; a wait of 0 is endless.
func OpenFile(ctx context.Context, path string, wait time.Duration) (*File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	file := &File{Path: path}
	if info.IsDir() {
		file.DataDir, file.Path = path, Database(path)
	}
	if info, err = os.Stat(file.Path); err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a pipe might never end
		return nil, fmt.Errorf("%s: %w: it is no regular file", file.Path, mvccdb.ErrNotDatabase)
	}
	if file.f, err = regular.Open(file.Path); err != nil {
		return nil, err
	}
	if err := file.open(ctx, wait); err != nil {
		return nil, errors.Join(err, file.f.Close())
	}
	return file, nil
}

func (f *File) open(ctx context.Context, wait time.Duration) error {
	info, err := f.f.Stat()
	if err != nil {
		return err
	}
	if err := WaitLock(ctx, f.f, wait); err != nil {
		return err
	}
	f.Size = info.Size()
	if f.DB, err = mvccdb.Open(f.f, f.Size); err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	return nil
}

// Close closes the file and frees its lock.
func (f *File) Close() error { return f.f.Close() }

// RestoreSource returns the file as what a restore takes. It can be read once.
func (f *File) RestoreSource() RestoreSource {
	return RestoreSource{Name: f.Path, Reader: f.f, At: f.f, Size: f.Size, Database: f.DataDir != ""}
}

// Database returns the path of the database in a data directory.
func Database(dataDir string) string { return filepath.Join(dataDir, memberDir, "snap", "db") }

// WaitLock waits until no running etcd holds the file, and keeps it from being
// taken until it is closed. A wait of 0 is endless.
func WaitLock(ctx context.Context, f *os.File, wait time.Duration) error {
	var late <-chan time.Time
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		late = timer.C
	}
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		if held, _ := mvccdb.IsHeldAlone(f); !held {
			return nil // where locks are not supported, nobody holds one
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-late:
			return hint.With(fmt.Errorf("%s: %w by a running etcd", f.Name(), ErrLocked),
				"stop that etcd, or look at a snapshot of it; --timeout sets the wait")
		case <-tick.C:
		}
	}
}
