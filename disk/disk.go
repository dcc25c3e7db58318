// Package disk measures a disk the way etcd uses it, and judges the result
// against what etcd needs.
//
// etcd acknowledges a write when an fdatasync of its write-ahead log has
// returned, so the time of that call decides how fast a cluster is and how
// stable its leader. Check writes small records to a new file, syncs after
// each, and keeps the time of every call.
package disk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/etcdkit/etcdkit/internal/dirfd"
	"github.com/etcdkit/etcdkit/internal/hint"
)

var (
	// ErrTooSlow says that the disk was measured and is below what was asked for.
	ErrTooSlow = errors.New("disk is too slow")
	// ErrCannotMeasure says that the folder or its filesystem cannot be
	// measured, or not enough of it was.
	ErrCannotMeasure = errors.New("cannot measure")
	// ErrOptions says that a measurement was asked for that makes no sense.
	ErrOptions = errors.New("bad option")
)

// Check measures the disk behind opts.Dir and judges it. The error is
// ErrTooSlow where the answer is bad; the report is whole then too.
func Check(ctx context.Context, opts Options) (*Report, error) {
	asked := opts
	opts, err := opts.complete()
	if err != nil {
		return nil, err
	}
	if opts.Dir, err = absDir(opts.Dir); err != nil {
		return nil, err
	}
	if opts.at, err = dirfd.Open(opts.Dir); err != nil {
		return nil, cannotMeasure(err)
	}
	defer opts.at.Close()
	fs, err := StatFilesystem(opts.at.Through())
	if err != nil {
		return nil, cannotMeasure(opts.at.Named(err))
	}
	if err := refuse(fs, opts); err != nil {
		return nil, err
	}
	seen := lookAround(fs, opts.at, opts.Dir)
	if err := guard(seen.found, opts); err != nil {
		return nil, err
	}
	if opts, err = opts.reduceFor(seen, asked); err != nil {
		return nil, err
	}
	report := newReport(opts, fs)
	report.tellUnseen(seen, opts)
	if err := report.measure(ctx, opts); err != nil {
		return nil, cannotMeasure(opts.at.Named(err))
	}
	report.warn()
	return report, report.judge(opts.Require)
}

// absDir returns the absolute path of a folder, for the report of a run is
// read elsewhere.
func absDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", cannotMeasure(err)
	}
	info, err := os.Stat(abs)
	if errors.Is(err, os.ErrNotExist) {
		return "", hint.With(cannotMeasure(err), "create the folder first, on the filesystem that etcd will use")
	}
	if err != nil {
		return "", cannotMeasure(err)
	}
	if !info.IsDir() {
		return "", hint.With(fmt.Errorf("%w %s: not a folder", ErrCannotMeasure, abs), "name the folder that will hold etcd's data")
	}
	return abs, nil
}

// cannotMeasure marks err as ErrCannotMeasure and adds what can be done about
// the usual causes. A measurement that was interrupted stays that.
func cannotMeasure(err error) error {
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, ErrOptions):
		return err
	case isNoSpace(err):
		err = hint.With(err, "free some space, or measure less with --size")
	case errors.Is(err, os.ErrPermission):
		err = hint.With(err, "measure as a user who may write there, or another folder on the same filesystem")
	case isReadOnly(err):
		err = hint.With(err, "remount the filesystem read-write: etcd needs that too")
	}
	return fmt.Errorf("%w: %w", ErrCannotMeasure, err)
}
