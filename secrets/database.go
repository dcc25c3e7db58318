package secrets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/etcdkit/etcdkit/internal/kube"
	"github.com/etcdkit/etcdkit/internal/mvccdb"
)

const (
	// lookRecords is how many records are looked at to find the prefix, before
	// the scan begins with what was found.
	lookRecords = 20_000
	// maxTries bounds how often something is read that a running member changes
	// meanwhile: a range of keys, a record of the log.
	maxTries = 3
	// maxScans bounds how often a file is read that a running member changed
	// meanwhile: after maxTries it ends when patience does.
	maxScans = 8
	patience = 30 * time.Second
)

// A File is a database file. A running member may be writing to it.
type File interface {
	io.ReaderAt
	// Size returns the size as it is now.
	Size() (int64, error)
}

// A cloner is a File that the filesystem can make a copy of at once, as it is
// at that moment.
type cloner interface {
	Clone() (File, io.Closer, error)
}

// ScanFile scans a database file, with what it still holds in free pages.
func ScanFile(ctx context.Context, f File, opts Options) (*Report, error) {
	s, err := scanFile(ctx, f, opts)
	if err != nil {
		return nil, err
	}
	return s.finish(), nil
}

// scanFile scans a database file. What a tree leads to counts only if its member
// did not change the file meanwhile, so it is read again then: from a copy where
// the filesystem makes one, otherwise from the fresh meta page.
func scanFile(ctx context.Context, f File, opts Options) (*databaseScan, error) {
	s, changed, err := scanTrees(ctx, f, opts, 1)
	if changed && ctx.Err() == nil {
		if c, ok := f.(cloner); ok {
			if clone, closer, cloneErr := c.Clone(); cloneErr == nil {
				defer closer.Close()
				return scanFile(ctx, clone, opts)
			}
		}
		s, changed, err = scanTrees(ctx, f, opts, maxScans)
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case changed && (err != nil || s == nil):
		return nil, fmt.Errorf("scan database: %w: %w", ErrIncomplete, errChanged)
	case err != nil:
		return nil, err
	}
	s.places(changed)
	if opts.wants(Free) {
		err = s.free(ctx)
	}
	if err == nil && s.none != nil && len(s.tally.seen) == 0 {
		err = s.none
	}
	return s, err
}

// errChanged says that a file cannot be read in one go.
var errChanged = errors.New("a running member changed the file while it was read")

// scanTrees scans what the trees of a database file lead to, until it did not
// change meanwhile, tries times at most.
func scanTrees(ctx context.Context, f File, opts Options, tries int) (s *databaseScan, changed bool, err error) {
	size, err := f.Size()
	if err != nil {
		return nil, false, fmt.Errorf("scan database: %w", err)
	}
	db, err := mvccdb.Open(f, size)
	if err != nil {
		return nil, false, fmt.Errorf("scan database: %w", err)
	}
	for try, began := 1, time.Now(); try <= tries && (try <= maxTries || time.Since(began) < patience); try++ {
		s, err = scanDatabase(ctx, db, opts)
		if ctx.Err() != nil {
			return nil, false, err
		}
		var refreshErr error
		if changed, refreshErr = refresh(db, f); refreshErr != nil {
			return nil, changed, fmt.Errorf("scan database: %w", refreshErr)
		}
		if !changed {
			break
		}
	}
	return s, changed, err
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
		found := s.finder.Prefixes()
		if more := union(prefixes, found); opts.Prefixes == nil && len(more) > len(prefixes) {
			prefixes = more
			continue
		}
		s.report.OtherPrefixes = without(found, prefixes)
		s.missing = without(opts.Prefixes, s.inUse)
		switch {
		case opts.mayBeEmpty, len(s.inUse) > 0, opts.Prefixes == nil && len(s.tally.seen) > 0:
			return s, nil
		case len(prefixes) == 0 && s.report.DamageCount > 0:
			prefixes = kube.UsualPrefixes() // what is left of the file is searched for them
			continue
		case s.report.DamageCount > 0:
			s.none = fmt.Errorf("scan database: %w: %s", ErrIncomplete, s.report.Damage[0])
		default:
			s.none = notKubernetes(opts.Prefixes, found)
		}
		if len(prefixes) == 0 {
			return nil, s.none
		}
		return s, nil // free pages may hold some
	}
}

// without returns what is in all and not in some.
func without(all, some []string) (rest []string) {
	for _, one := range all {
		if !slices.Contains(some, one) {
			rest = append(rest, one)
		}
	}
	return rest
}

// union is both, sorted, without repetition.
func union(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

// notKubernetes says that nothing was found, where, and where something is.
func notKubernetes(prefixes, found []string) error {
	switch {
	case prefixes == nil:
		return fmt.Errorf("scan database: %w", ErrNotKubernetes)
	case len(found) > 0:
		return fmt.Errorf("scan database: %w under %s; there are some under %s", ErrNotKubernetes, join(prefixes), join(found))
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

	mu     sync.Mutex  // guards the tally where free pages are searched
	finder kube.Finder // of keys that belong to none of the prefixes
	inUse  []string    // the prefixes that have objects

	missing []string // prefixes that were asked for and have none
	none    error    // that no object is in a tree, under none of the prefixes
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
	return nil
}

// places says how much of the trees was read. Where the file changed meanwhile,
// what looks damaged is nothing but that, and objects may be missing.
func (s *databaseScan) places(changed bool) {
	reason := ""
	switch {
	case changed:
		s.report.ChangedWhileReading = true
		s.report.Damage, s.report.DamageCount = nil, 0
		reason = errChanged.Error()
	case s.report.DamageCount > 0:
		reason = "some pages are damaged"
	case len(s.missing) > 0 && !s.opts.mayBeEmpty:
		reason = fmt.Sprintf("%v under %s", ErrNotKubernetes, join(s.missing))
	}
	for _, p := range []Place{Live, History} {
		if s.opts.wants(p) {
			s.tally.place(p, reason == "", s.db.Size(), reason)
		}
	}
}

func (s *databaseScan) finish() *Report {
	s.tally.finish(s.opts.Config)
	return s.report
}

// found is what a batch of records holds.
type found struct {
	versions []ofKey
	revision int64
	finder   *kube.Finder
	inUse    []string
}

// ofKey is a version of a key.
type ofKey struct {
	id mvccdb.KeyID
	version
}

// batch returns what judges a batch of records, on all cores at once.
func (s *databaseScan) batch(ctx context.Context) func(*mvccdb.Batch) (found, error) {
	return func(b *mvccdb.Batch) (found, error) {
		f := found{finder: &kube.Finder{}}
		for i := range b.Records {
			rec := &b.Records[i]
			f.place(s.scope, rec)
			k, ok := s.scope.match(rec.Key)
			if !ok {
				continue
			}
			v := ofKey{id: s.latest.keys.ID(rec.Key)}
			if !rec.Tombstone {
				at := stamp{create: rec.CreateRevision, mod: rec.Rev.Main}
				v.version, _ = s.judge.value(ctx, k, stored{etcdKey: rec.Key, value: rec.Value, complete: true, opened: true, stamp: at})
			}
			f.versions = append(f.versions, v)
		}
		if n := len(b.Records); n > 0 {
			f.revision = b.Records[n-1].Rev.Main
		}
		return f, ctx.Err()
	}
}

// place notes whose object a record is: of a control plane that is scanned, or
// perhaps of another one.
func (f *found) place(s *scope, rec *mvccdb.Record) {
	prefix, ok := s.prefixOf(rec.Key)
	switch {
	case !ok && !rec.Tombstone && len(rec.Key) > 0:
		f.finder.Add(rec.Key, rec.Value)
	case ok && !slices.Contains(f.inUse, prefix):
		f.inUse = append(f.inUse, prefix)
	}
}

// inOrder gets what was found in order of revision: whatever a key had before
// is history.
func (s *databaseScan) inOrder(f found) error {
	s.report.Revision = max(s.report.Revision, f.revision)
	s.finder.Merge(f.finder)
	s.inUse = union(s.inUse, f.inUse)
	for _, v := range f.versions {
		s.latest.add(v.id, v.version)
	}
	return nil
}
