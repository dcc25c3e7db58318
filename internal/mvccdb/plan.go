package mvccdb

import (
	"context"
	"slices"
)

// plan makes the tasks of all buckets.
func (s *scan[T]) plan(ctx context.Context) error {
	r := &reader{db: s.db, reached: s.opts.Reached}
	if err := s.markFreelist(ctx, r); err != nil {
		return err
	}
	roots, err := r.roots(func(err error) error { return s.planDamage(ctx, err) })
	if err != nil {
		return err
	}
	for _, b := range roots {
		if s.opts.Buckets != nil && !slices.Contains(s.opts.Buckets, b.name) {
			continue
		}
		if err := s.planBucket(ctx, r, b); err != nil {
			return err
		}
	}
	return nil
}

func (s *scan[T]) planBucket(ctx context.Context, r *reader, b root) error {
	p := &planner[T]{s: s, reader: reader{db: r.db, reached: r.reached, bucket: b.name}, first: true}
	if b.page == 0 {
		inline, err := p.inlinePage(b)
		if err != nil {
			return s.planDamage(ctx, err)
		}
		return p.send(ctx, &task[T]{inline: inline})
	}
	return p.descend(ctx, []child{{id: b.page, from: b.offset}}, 0)
}

// planDamage puts damage in its place among the tasks.
func (s *scan[T]) planDamage(ctx context.Context, err error) error {
	d, ok := err.(*Damage) //nolint:errorlint // made here, never wrapped
	if !ok {
		return err
	}
	t := &task[T]{done: make(chan struct{}), results: []result[T]{{damage: d}}}
	close(t.done)
	select {
	case s.order <- t:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// markFreelist counts the pages of a stored freelist as reached. etcd's files
// have none, other programs' do.
func (s *scan[T]) markFreelist(ctx context.Context, r *reader) error {
	id := s.db.meta.freelist
	if id == noFreelist {
		return nil
	}
	bad := func(what string) error {
		return s.planDamage(ctx, &Damage{Page: id, Offset: int64(id) * int64(s.db.meta.pageSize), What: what})
	}
	if id < 2 || id >= s.db.present() {
		return bad("the meta page points to a freelist outside of the file")
	}
	buf := make([]byte, pageHeaderSize)
	if err := s.db.readAt(buf, int64(id)*int64(s.db.meta.pageSize)); err != nil {
		return r.readError(id, err)
	}
	h := parseHeader(buf)
	if h.id != id || h.flags != flagFreelist || uint64(h.overflow) >= s.db.present()-id {
		return bad("the meta page points to a freelist that is none")
	}
	for i := uint64(0); i <= uint64(h.overflow); i++ {
		r.reached.add(id + i)
	}
	return nil
}

// planner makes the tasks of one bucket.
type planner[T any] struct {
	reader
	s     *scan[T]
	first bool
}

// descend goes down until it finds pages that are leaves, and makes tasks of
// those. All pages of one list are on the same level; a worker that finds it
// otherwise walks on by itself.
func (p *planner[T]) descend(ctx context.Context, list []child, depth int) error {
	for i, c := range list {
		leaf, err := p.isLeaf(c)
		if err != nil {
			return err
		}
		if leaf {
			return p.cut(ctx, list[i:], depth)
		}
		pg, err := p.open(c, depth)
		if err != nil {
			if err := p.s.planDamage(ctx, err); err != nil {
				return err
			}
			continue
		}
		if err := p.descend(ctx, p.children(pg, c), depth+1); err != nil {
			return err
		}
	}
	return nil
}

// isLeaf looks at the type of a page, without judging it.
func (p *planner[T]) isLeaf(c child) (bool, error) {
	if c.id < 2 || c.id >= p.db.present() {
		return false, nil
	}
	buf := make([]byte, pageHeaderSize)
	if err := p.db.readAt(buf, int64(c.id)*int64(p.db.meta.pageSize)); err != nil {
		return false, p.readError(c.id, err)
	}
	return parseHeader(buf).flags == flagLeaf, nil
}

// cut makes tasks out of leaf pages.
func (p *planner[T]) cut(ctx context.Context, list []child, depth int) error {
	for part := range slices.Chunk(list, batchPages) {
		if err := p.send(ctx, &task[T]{pages: part, depth: depth}); err != nil {
			return err
		}
	}
	return nil
}

func (p *planner[T]) send(ctx context.Context, t *task[T]) error {
	t.bucket, t.first, t.done = p.bucket, p.first, make(chan struct{})
	p.first = false
	for _, to := range []chan *task[T]{p.s.order, p.s.queue} {
		select {
		case to <- t:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
