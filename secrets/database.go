package secrets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/etcdkit/etcdkit/internal/kube"
	"github.com/etcdkit/etcdkit/internal/mvccdb"
)

const (
	// lookRecords is how many records are looked at to find the prefix, before
	// the scan begins with what was found.
	lookRecords = 20_000
	// maxTries bounds how often a file is read again that a running member
	// changed meanwhile.
	maxTries = 3
)

// A File is a database file. A running member may be writing to it.
type File interface {
	io.ReaderAt
	// Size returns the size as it is now.
	Size() (int64, error)
}

// ScanFile scans a database file, with what it still holds in free pages.
func ScanFile(ctx context.Context, f File, opts Options) (*Report, error) {
	s, err := scanFile(ctx, f, opts)
	if err != nil {
		return nil, err
	}
	return s.finish(), nil
}

// scanFile scans a database file until it did not change meanwhile, or too
// often.
func scanFile(ctx context.Context, f File, opts Options) (*databaseScan, error) {
	size, err := f.Size()
	if err != nil {
		return nil, fmt.Errorf("scan database: %w", err)
	}
	db, err := mvccdb.Open(f, size)
	if err != nil {
		return nil, fmt.Errorf("scan database: %w", err)
	}
	for try := 1; ; try++ {
		s, err := scanDatabase(ctx, db, opts)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		changed, refreshErr := refresh(db, f)
		if refreshErr != nil {
			return nil, fmt.Errorf("scan database: %w", refreshErr)
		}
		if changed && try < maxTries {
			continue
		}
		if err == nil && changed {
			s.report.changed()
		}
		return s, err
	}
}

func refresh(db *mvccdb.DB, f File) (changed bool, err error) {
	size, err := f.Size()
	if err != nil {
		return false, err
	}
	return db.Refresh(size)
}

// scanDatabase scans a database once, or twice if it finds on the way that
// Kubernetes' keys are in a place where it did not look.
func scanDatabase(ctx context.Context, db *mvccdb.DB, opts Options) (*databaseScan, error) {
	prefixes := opts.Prefixes
	if prefixes == nil {
		var err error
		if prefixes, err = lookForPrefixes(ctx, db); err != nil {
			return nil, err
		}
		prefixes = union(prefixes, opts.Known)
	}
	for {
		s := newDatabaseScan(db, opts, prefixes)
		if err := s.run(ctx); err != nil {
			return nil, err
		}
		if more := union(prefixes, s.finder.Prefixes()); len(more) > len(prefixes) {
			prefixes = more
			continue
		}
		switch {
		case s.kubernetes || len(s.tally.seen) > 0 || opts.mayBeEmpty:
			return s, nil
		case len(prefixes) == 0 && s.report.DamageCount > 0:
			prefixes = kube.UsualPrefixes() // what is left of the file is searched for them
			continue
		case s.report.DamageCount > 0:
			return nil, fmt.Errorf("scan database: %w: %s", ErrIncomplete, s.report.Damage[0])
		}
		return nil, notKubernetes(opts.Prefixes)
	}
}

// union is both, sorted, without repetition.
func union(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

// notKubernetes says that nothing was found, and where.
func notKubernetes(prefixes []string) error {
	if prefixes == nil {
		return fmt.Errorf("scan database: %w", ErrNotKubernetes)
	}
	return fmt.Errorf("scan database: %w under %s", ErrNotKubernetes, join(prefixes))
}

// errEnough ends a scan early.
var errEnough = errors.New("seen enough")

// lookForPrefixes looks at the oldest records. Those of a control plane's
// first minutes are among them, as long as they were not rewritten.
func lookForPrefixes(ctx context.Context, db *mvccdb.DB) ([]string, error) {
	var finder kube.Finder
	seen := 0
	opts := mvccdb.Options{Buckets: []string{mvccdb.KeyBucket}, Workers: 1, Damage: func(*mvccdb.Damage) error { return nil }}
	look := func(b *mvccdb.Batch) (struct{}, error) {
		for _, rec := range b.Records {
			finder.Add(rec.Key, rec.Value)
		}
		if seen += len(b.Records); seen > lookRecords {
			return struct{}{}, errEnough
		}
		return struct{}{}, nil
	}
	err := mvccdb.Scan(ctx, db, opts, look, func(struct{}) error { return nil })
	if err != nil && !errors.Is(err, errEnough) {
		return nil, fmt.Errorf("look for Kubernetes' keys: %w", err)
	}
	return finder.Prefixes(), nil
}

// databaseScan is one pass over a database file.
type databaseScan struct {
	db     *mvccdb.DB
	opts   Options
	scope  *scope
	judge  *judge
	tally  *tally
	report *Report

	reached mvccdb.PageSet
	latest  *latest

	mu         sync.Mutex
	finder     kube.Finder // of keys that are under none of the prefixes
	kubernetes bool        // a key is under one of the prefixes
}

func newDatabaseScan(db *mvccdb.DB, opts Options, prefixes []string) *databaseScan {
	s := &databaseScan{db: db, opts: opts, scope: newScope(prefixes, opts)}
	s.judge = newJudge(opts, s.scope)
	s.tally = newTally(s.scope, opts)
	s.report = s.tally.report
	s.latest = newLatest(s.tally, opts.wants(History))
	return s
}

func (s *databaseScan) run(ctx context.Context) error {
	opts := mvccdb.Options{Reached: &s.reached, Damage: func(d *mvccdb.Damage) error {
		s.report.damage(d.Error())
		return nil
	}}
	if !s.opts.wants(Free) {
		opts.Buckets = []string{mvccdb.KeyBucket} // what else is reached matters for free pages alone
	}
	if s.opts.Progress != nil {
		opts.Progress = s.opts.Progress
	}
	if err := mvccdb.Scan(ctx, s.db, opts, s.batch(ctx), s.inOrder); err != nil {
		return fmt.Errorf("scan database: %w", err)
	}
	if s.opts.wants(Live) {
		s.latest.live()
	}
	s.latest = nil
	reason := ""
	if s.report.DamageCount > 0 {
		reason = "some pages are damaged"
	}
	for _, p := range []Place{Live, History} {
		if s.opts.wants(p) {
			s.tally.place(p, reason == "", s.db.Size(), reason)
		}
	}
	if s.opts.wants(Free) {
		return s.free(ctx)
	}
	return nil
}

func (s *databaseScan) finish() *Report {
	s.tally.finish(s.opts.Config)
	return s.report
}

// found is what a batch of records holds.
type found struct {
	versions []ofKey
	revision int64
}

// ofKey is a version of a key.
type ofKey struct {
	id mvccdb.KeyID
	version
}

// batch returns what judges a batch of records, on all cores at once.
func (s *databaseScan) batch(ctx context.Context) func(*mvccdb.Batch) (found, error) {
	return func(b *mvccdb.Batch) (found, error) {
		var f found
		kubernetes := false
		for i := range b.Records {
			rec := &b.Records[i]
			if !s.scope.underPrefix(rec.Key) {
				s.stray(rec)
				continue
			}
			kubernetes = true
			k, ok := s.scope.match(rec.Key)
			if !ok {
				continue
			}
			v := ofKey{id: s.latest.keys.ID(rec.Key)}
			if !rec.Tombstone {
				at := stamp{create: rec.CreateRevision, mod: rec.Rev.Main}
				v.version = s.judge.value(ctx, k, stored{etcdKey: rec.Key, value: rec.Value, complete: true, stamp: at})
			}
			f.versions = append(f.versions, v)
		}
		if n := len(b.Records); n > 0 {
			f.revision = b.Records[n-1].Rev.Main
		}
		if kubernetes {
			s.mu.Lock()
			s.kubernetes = true
			s.mu.Unlock()
		}
		return f, ctx.Err()
	}
}

// stray looks at a key that is under none of the prefixes.
func (s *databaseScan) stray(rec *mvccdb.Record) {
	if s.opts.Prefixes != nil || rec.Tombstone || len(rec.Key) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finder.Add(rec.Key, rec.Value)
}

// inOrder gets what was found in order of revision: whatever a key had before
// is history.
func (s *databaseScan) inOrder(f found) error {
	s.report.Revision = max(s.report.Revision, f.revision)
	for _, v := range f.versions {
		s.latest.add(v.id, v.version)
	}
	return nil
}
