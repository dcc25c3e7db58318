package secrets

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/kube"
)

// DataDirOptions says what to look for in a data directory.
type DataDirOptions struct {
	Options
	WALDir string // where the write-ahead log is, if not in its usual place
}

// ScanDataDir scans the data directory of a member, stopped or running: its
// database, its write-ahead log, and databases that a leader sent. It opens
// files for reading only and takes no lock.
func ScanDataDir(ctx context.Context, dir string, opts DataDirOptions) (*Report, error) {
	member, err := memberDir(dir)
	if err != nil {
		return nil, err
	}
	if opts.WALDir == "" {
		opts.WALDir = filepath.Join(member, "wal")
	}
	d := &dataDir{opts: opts, member: member}
	s, err := d.database(ctx)
	if err != nil {
		return nil, err
	}
	if opts.wants(WAL) {
		if err := d.wal(ctx, s); err != nil {
			return nil, err
		}
	}
	if opts.wants(Other) {
		if err := d.others(ctx, s, dir); err != nil {
			return nil, err
		}
	}
	return s.finish(), nil
}

// memberDir finds the folder member in a data directory. Its own path is fine
// too.
func memberDir(dir string) (string, error) {
	for _, member := range []string{filepath.Join(dir, "member"), dir} {
		if info, err := os.Stat(filepath.Join(member, "snap")); err == nil && info.IsDir() {
			return member, nil
		}
	}
	if _, err := os.ReadDir(dir); err != nil {
		return "", fmt.Errorf("scan data directory: %w", err)
	}
	return "", hint.With(fmt.Errorf("scan data directory: %s has no member/snap", dir), "name the folder that etcd's --data-dir names")
}

// dataDir is a data directory being scanned.
type dataDir struct {
	opts   DataDirOptions
	member string
}

// database scans the database, if that is wanted and possible. What is left
// can be scanned without it.
func (d *dataDir) database(ctx context.Context) (*databaseScan, error) {
	if !d.opts.wants(Live) && !d.opts.wants(History) && !d.opts.wants(Free) {
		return d.withoutDatabase(ctx, "")
	}
	path := filepath.Join(d.member, "snap", "db")
	s, err := scanPath(ctx, path, d.opts.Options)
	switch {
	case err == nil || ctx.Err() != nil:
		return s, err
	case errors.Is(err, ErrNotKubernetes):
		return d.youngDatabase(ctx, path, err)
	case !d.opts.wants(WAL):
		return nil, err
	}
	return d.withoutDatabase(ctx, err.Error())
}

// youngDatabase scans a database without an object, whose first ones are only
// in the log yet: a running member writes its database a moment later.
func (d *dataDir) youngDatabase(ctx context.Context, path string, notKubernetes error) (*databaseScan, error) {
	if d.opts.Prefixes != nil || !d.opts.wants(WAL) {
		return nil, notKubernetes
	}
	prefixes, err := d.logPrefixes(ctx)
	if err != nil || len(prefixes) == 0 {
		return nil, notKubernetes
	}
	opts := d.opts.Options
	opts.Known, opts.mayBeEmpty = union(opts.Known, prefixes), true
	return scanPath(ctx, path, opts)
}

// logPrefixes finds Kubernetes' prefixes in the log.
func (d *dataDir) logPrefixes(ctx context.Context) ([]string, error) {
	var finder kube.Finder
	log := walLog{damage: func(string) {}, put: func(p walPut) error { finder.Add(p.key, p.value); return ctx.Err() }}
	err := log.read(d.opts.WALDir)
	return finder.Prefixes(), err
}

// scanPath scans the database file at path.
func scanPath(ctx context.Context, path string, opts Options) (s *databaseScan, err error) {
	f, _, err := openRegular(path)
	if err != nil {
		return nil, fmt.Errorf("scan database: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return scanFile(ctx, OSFile{f}, opts)
}

// withoutDatabase begins a report that has the log alone. reason says why the
// database cannot be read.
func (d *dataDir) withoutDatabase(ctx context.Context, reason string) (*databaseScan, error) {
	prefixes := d.opts.Prefixes
	if prefixes == nil {
		found, err := d.logPrefixes(ctx)
		if err != nil {
			return nil, errors.Join(errors.New("scan data directory: "+reason), err)
		}
		if prefixes = union(found, d.opts.Known); len(prefixes) == 0 {
			return nil, fmt.Errorf("scan data directory: %w in the write-ahead log", ErrNotKubernetes)
		}
	}
	s := newDatabaseScan(nil, d.opts.Options, prefixes)
	if reason != "" {
		for _, p := range []Place{Live, History, Free} {
			if d.opts.wants(p) {
				s.tally.place(p, false, 0, reason)
			}
		}
	}
	return s, nil
}

// wal scans the write-ahead log and the databases that a leader sent.
func (d *dataDir) wal(ctx context.Context, s *databaseScan) error {
	before := s.report.DamageCount
	log := s.log(ctx, WAL, "")
	err := log.read(d.opts.WALDir)
	if err == nil {
		err = d.received(ctx, s, &log.bytes)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	reason := ""
	switch {
	case err != nil:
		reason = err.Error()
	case s.report.DamageCount > before:
		reason = "some records are damaged"
	}
	s.tally.place(WAL, reason == "", log.bytes, reason)
	return nil
}

// log returns a reader of write-ahead logs whose puts count in a place.
func (s *databaseScan) log(ctx context.Context, place Place, file string) *walLog {
	return &walLog{dirs: s.scope.dirs, damage: s.report.damage, put: func(p walPut) error {
		k, ok := s.scope.match(p.key)
		if !ok {
			return ctx.Err()
		}
		v, told := s.judge.value(ctx, k, stored{etcdKey: p.key, value: p.value, complete: p.complete, stamp: stamp{index: p.index, file: file}})
		if told {
			s.tally.add(place, v)
		}
		return ctx.Err()
	}}
}

// received scans databases that stand beside the one in use: those that a
// leader sent, and what a defragmentation left that did not end. One that a
// running member removes meanwhile is no concern.
func (d *dataDir) received(ctx context.Context, s *databaseScan, size *int64) error {
	snap := filepath.Join(d.member, "snap")
	entries, err := os.ReadDir(snap)
	if err != nil {
		return fmt.Errorf("scan databases received: %w", err)
	}
	var failed error
	for _, e := range entries {
		if !isReceived(e.Name()) {
			continue
		}
		read, err := s.beside(ctx, filepath.Join(snap, e.Name()), WAL, "")
		*size += read
		if err != nil && !errors.Is(err, fs.ErrNotExist) && failed == nil {
			failed = fmt.Errorf("%s: %w", e.Name(), err)
		}
	}
	return failed
}

// isReceived reports whether a file in the folder snap is a database that is
// not in use.
func isReceived(name string) bool {
	return strings.HasSuffix(name, ".snap.db") || strings.HasPrefix(name, "db.tmp") || strings.HasPrefix(name, "tmp")
}
