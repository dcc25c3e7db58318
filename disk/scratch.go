package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"

	"github.com/etcdkit/etcdkit/internal/dirfd"
	"github.com/etcdkit/etcdkit/internal/scratch"
)

// scratchPrefix begins the name of every folder that a measurement makes.
const scratchPrefix = ".etcdkit-disk-"

// folders are the folders of rounds, inside the folder to be measured.
func folders() scratch.Kind { return scratch.Kind{Prefix: scratchPrefix, Marker: "etcdkit-disk-check"} }

// A file is what a writer writes to: a file on the disk, or in tests a fake.
type file interface {
	io.Writer
	// Sync returns when the data written is on the disk.
	Sync() error
	io.Closer
}

// synced is a file that is synced the way etcd does it.
type synced struct {
	*os.File
	// alone is set for a single writer, which may keep its processor while the
	// disk works: with several, those that wait for one would not be measured.
	alone bool
}

func (f synced) Sync() error {
	if f.alone {
		return bareFdatasync(f.File)
	}
	return fileutil.Fdatasync(f.File)
}

// dsynced is a file opened with O_DSYNC: its writes are synced already.
type dsynced struct{ *os.File }

func (dsynced) Sync() error { return nil }

// create makes a new file of the full size, allocated but not written, as both
// etcd's log segments and fio's files are.
func create(s *scratch.Folder, n int, size int64, odsync, alone bool) (_ file, err error) {
	flags := os.O_CREATE | os.O_EXCL | os.O_RDWR
	if odsync {
		flags |= dsync
	}
	f, err := s.Dir().OpenFile(strconv.Itoa(n), flags, fileutil.PrivateFileMode)
	if err != nil {
		return nil, err
	}
	if err := fileutil.Preallocate(f, size, true); err != nil {
		return nil, errors.Join(fmt.Errorf("allocate %s in %s: %w", bytesOf(size), filepath.Dir(s.Path()), err), f.Close())
	}
	if odsync {
		return dsynced{f}, nil
	}
	return synced{f, alone}, nil
}

// beginFiles prepares a round of the single-file patterns: a new file for each
// writer, nameless at once where that changes nothing for the filesystem.
func beginFiles(_ context.Context, opts Options, fs Filesystem) (_ round, err error) {
	s, err := folders().NewIn(opts.at)
	if err != nil {
		return round{}, err
	}
	var files []file
	end := func() error {
		var err error
		for _, f := range files {
			err = errors.Join(err, f.Close())
		}
		return errors.Join(err, s.Remove())
	}
	defer func() {
		if err != nil {
			err = joinEnd(err, end)
		}
	}()
	r := round{end: end}
	alone := opts.Jobs == 1 && runtime.GOMAXPROCS(0) > 1
	for i := range opts.Jobs {
		f, err := create(s, i, opts.Size, opts.ODSync, alone)
		if err != nil {
			return round{}, err
		}
		files = append(files, f)
		r.ops = append(r.ops, writeAndSync(f, blocks(opts.Block), opts.ODSync))
	}
	if fs.unlinks() {
		// Where open files cannot be unlinked after all, end does it.
		_ = s.Remove()
	}
	return r, nil
}

// writeAndSync returns the operation of the single-file patterns.
func writeAndSync(f file, next func() []byte, odsync bool) operation {
	return func() (time.Time, error) {
		start := time.Now()
		if _, err := f.Write(next()); err != nil {
			return start, err
		}
		if odsync {
			return start, nil // the write was the sync
		}
		syncing := time.Now()
		return syncing, f.Sync()
	}
}

// settleTime is enough for a disk to take in that some 100 MB are free again.
const settleTime = 200 * time.Millisecond

// settle makes the filesystem free what a round has removed, so that the next
// one does not pay for it: freeing may mean to discard the blocks on the disk.
func settle(ctx context.Context, dir *dirfd.Dir) {
	_ = dir.Sync() // some systems cannot sync a folder
	rest(ctx, settleTime)
}

// joinEnd runs end and adds its error to err.
func joinEnd(err error, end func() error) error {
	if endErr := end(); endErr != nil {
		return errors.Join(err, fmt.Errorf("clean up: %w", endErr))
	}
	return err
}
