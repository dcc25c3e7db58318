package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.uber.org/zap"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/mvccdb"
)

// Defragmented reports what a defragmentation gave back.
type Defragmented struct {
	DataDir       string
	Before, After int64 // bytes of the database file
}

// DefragmentDataDir rewrites the database of a data directory that no etcd
// uses, without its free pages. A damaged database is refused: the rewrite
// would take what is left for all there is.
func DefragmentDataDir(ctx context.Context, dataDir string, wait time.Duration, log *zap.Logger) (d *Defragmented, err error) {
	path := Database(dataDir)
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if err := checkBeforeWriting(ctx, dataDir, wait); err != nil {
		return nil, err
	}
	if free, little := tooLittle(dataDir, uint64(info.Size())); little {
		return nil, hint.With(fmt.Errorf("%w: %s has %d MiB free, a second copy may need %d MiB", ErrNoSpace, dataDir, free>>20, info.Size()>>20), "free some first")
	}
	if log == nil {
		log = zap.NewNop()
	}
	err = withBackend(path, wait, log, func(be backend.Backend) error { return be.Defrag() })
	if err != nil {
		return nil, err
	}
	after, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return &Defragmented{DataDir: dataDir, Before: info.Size(), After: after.Size()}, nil
}

// checkBeforeWriting refuses a database that is in use or damaged.
func checkBeforeWriting(ctx context.Context, dataDir string, wait time.Duration) (err error) {
	f, err := OpenFile(ctx, dataDir, wait)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	report, err := f.Check(ctx, mvccdb.CheckOptions{SkipTrailer: true})
	if err != nil {
		return err
	}
	for _, d := range report.Damage {
		if d.Page > 1 { // a broken meta page is mended by writing
			return fmt.Errorf("%s: %w", f.Path, &DamageError{First: d, Count: report.DamageCount})
		}
	}
	return nil
}

// withBackend opens a database for writing, and turns the panics by which
// etcd's packages give up into errors.
func withBackend(path string, wait time.Duration, log *zap.Logger, fn func(backend.Backend) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: %v", path, p)
		}
	}()
	be := backend.NewDefaultBackend(log, path, backend.WithTimeout(wait))
	return errors.Join(fn(be), be.Close())
}
