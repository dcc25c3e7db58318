package mvccdb

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"
)

// Names of etcd's buckets.
const (
	KeyBucket     = "key"
	MetaBucket    = "meta"
	LeaseBucket   = "lease"
	AlarmBucket   = "alarm"
	ClusterBucket = "cluster"
	MembersBucket = "members"
	AuthBucket    = "auth"
	UsersBucket   = "authUsers"
	RolesBucket   = "authRoles"
)

// Element is a key and a value as stored in a bucket.
type Element struct {
	RawKey, RawValue []byte
	Page             uint64 // where it stands
	Offset           int64  // of its header in the file
}

// Batch is a piece of a bucket, in key order. It is valid only during the
// call that it was given to.
type Batch struct {
	Bucket   string
	First    bool      // the first one of its bucket; every bucket has one, if with nothing in it
	Elements []Element // all of them
	Records  []Record  // in the key bucket: the elements decoded, without those that cannot be
	Pages    int       // pages read for it

	undecoded []place // of records that are not in Records, where the revision is known
}

// Options of a scan. The zero value scans every bucket with all cores and ends
// at the first damage.
type Options struct {
	Buckets []string // only these; nil means all
	Workers int      // 0 means one per core

	// Damage is told what is wrong, in file order, and decides: nil goes on
	// with what is left, an error ends the scan. Without it the scan ends.
	Damage func(*Damage) error
	// Reached, if set, is filled with all pages that the scan reached: of
	// the whole file only if it covers all buckets.
	Reached *PageSet
	// Progress, if set, is told the bytes done and the bytes there are.
	Progress func(done, total int64)
}

// Limits of a batch: what is read at once, and how much room between two
// pages is read along rather than skipped.
const (
	batchPages = 64
	gapPages   = 8
)

// Scan reads buckets in file order: each works on batches, on all cores at
// once, and inOrder gets what each returned, one after the other in the order
// of bucket names and keys. Either's error ends the scan.
func Scan[T any](ctx context.Context, db *DB, opts Options, each func(*Batch) (T, error), inOrder func(T) error) error {
	if opts.Reached == nil {
		opts.Reached = new(PageSet)
	}
	if opts.Workers == 0 {
		opts.Workers = runtime.GOMAXPROCS(0)
	}
	opts.Reached.reset(db.present() + 1)
	s := &scan[T]{db: db, opts: opts, each: each, inOrder: inOrder}
	s.queue = make(chan *task[T], 2*opts.Workers)
	s.order = make(chan *task[T], 4*opts.Workers)
	return s.run(ctx)
}

// scan is a pipeline: plan walks the branch pages and makes tasks, workers do
// them, and collect takes their results in the order planned.
type scan[T any] struct {
	db      *DB
	opts    Options
	each    func(*Batch) (T, error)
	inOrder func(T) error
	queue   chan *task[T] // to the workers
	order   chan *task[T] // to collect
}

// task is a part of a bucket: an inline page, or pages side by side under one
// branch page. Or it is damage that plan found.
type task[T any] struct {
	bucket string
	first  bool
	inline *page
	pages  []child
	depth  int

	done    chan struct{} // closed when results is complete
	results []result[T]
	err     error // ends the scan
}

// result is a batch's result, or damage.
type result[T any] struct {
	value  T
	damage *Damage
	pages  int
}

func (s *scan[T]) run(ctx context.Context) error {
	for _, d := range s.db.damage {
		if err := s.report(d); err != nil {
			return err
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(s.order)
		defer close(s.queue)
		return s.plan(ctx)
	})
	for range s.opts.Workers {
		g.Go(func() error { return s.work(ctx) })
	}
	g.Go(func() error { return s.collect(ctx) })
	return g.Wait()
}

func (s *scan[T]) report(d *Damage) error {
	if s.opts.Damage == nil {
		return d
	}
	return s.opts.Damage(d)
}

// collect hands results on in order.
func (s *scan[T]) collect(ctx context.Context) error {
	var pages int64
	total := int64(s.db.present())
	for t := range s.order {
		select {
		case <-t.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := s.handOn(t.results); err != nil {
			return err
		}
		if t.err != nil {
			return t.err
		}
		for _, r := range t.results {
			pages += int64(r.pages)
		}
		if s.opts.Progress != nil {
			size := int64(s.db.meta.pageSize)
			s.opts.Progress(min(pages, total)*size, total*size)
		}
	}
	return nil
}

func (s *scan[T]) handOn(results []result[T]) error {
	for _, r := range results {
		var err error
		if r.damage != nil {
			err = s.report(r.damage)
		} else {
			err = s.inOrder(r.value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
