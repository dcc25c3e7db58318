package mvccdb

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
)

// finish walks the trees with what was kept.
func (s *pageStream) finish(ctx context.Context) (*Streamed, error) {
	w := &streamWalk{pageStream: s, report: &Streamed{Unexamined: s.unexamined}}
	if s.unexamined == "" && s.page == 0 {
		w.report.Unexamined = "it ended before its first page"
	}
	if w.report.Unexamined != "" {
		return w.report, nil
	}
	db, err := Open(s, s.size)
	if err == nil && db.meta.freelist != noFreelist {
		w.report.Unexamined = "it has a list of free pages, which etcd's snapshots do not have"
		return w.report, nil
	}
	if err == nil {
		err = w.run(ctx, db)
	}
	if err := w.damage(err); err != nil {
		return nil, fmt.Errorf("examine the stream: %w", err)
	}
	return w.report, nil
}

// streamWalk is the end of an examination.
type streamWalk struct {
	*pageStream
	report  *Streamed
	reader  reader
	compact int64
	last    Revision
	gap     bool // one was found
}

// damage notes damage, and returns any other error.
func (w *streamWalk) damage(err error) error {
	if err == nil {
		return nil
	}
	d, ok := errors.AsType[*Damage](err)
	if !ok {
		return err
	}
	if d.Page < w.next {
		if f, known := w.wrong[d.Page]; known { // it reads as zeroes
			d = &Damage{Page: d.Page, Offset: int64(d.Page)*int64(w.page) + int64(f.at), Bucket: d.Bucket, What: f.what}
		}
	}
	if w.report.DamageCount++; w.report.DamageCount <= defaultMaxDamage {
		w.report.Damage = append(w.report.Damage, d)
	}
	return nil
}

func (w *streamWalk) run(ctx context.Context, db *DB) error {
	for _, d := range db.damage {
		if err := w.damage(d); err != nil {
			return err
		}
	}
	state, err := db.State(ctx)
	if err := w.damage(err); err != nil {
		return err
	}
	w.report.State, w.compact = *state, state.CompactRevision()
	for _, d := range state.Damage {
		_ = w.damage(d)
	}
	w.last = Revision{Main: max(1, w.compact)}
	var reached PageSet
	reached.reset(db.present() + 1)
	w.reader = reader{db: db, reached: &reached}
	roots, err := w.reader.roots(w.damage)
	if err != nil {
		return err
	}
	var names []string
	for _, b := range roots {
		names = append(names, b.name)
		w.reader.bucket = b.name
		if err := w.bucket(ctx, b); err != nil {
			return err
		}
	}
	for _, d := range bucketDamage(names) {
		_ = w.damage(d)
	}
	w.report.Revision = max(1, w.last.Main, w.compact)
	return nil
}

func (w *streamWalk) bucket(ctx context.Context, b root) error {
	switch {
	case b.page == 0:
		p, err := w.reader.inlinePage(b)
		if err != nil {
			return w.damage(err)
		}
		return w.leaf(p)
	default:
		return w.walk(ctx, child{id: b.page, from: b.offset}, 0)
	}
}

// walk goes through a tree. A leaf of the key bucket is known by its summary.
func (w *streamWalk) walk(ctx context.Context, c child, depth int) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if at, known := w.index[c.id]; known && w.reader.bucket == KeyBucket {
		return w.damage(w.span(c, &w.spans[at]))
	}
	p, err := w.reader.open(c, depth)
	if err != nil {
		return w.damage(err)
	}
	if p.flags == flagLeaf {
		return w.leaf(p)
	}
	for _, below := range w.reader.children(p, c) {
		if err := w.walk(ctx, below, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// leaf looks at a leaf that was kept whole.
func (w *streamWalk) leaf(p *page) error {
	for i := range int(p.count) {
		e := p.element(i)
		el := Element{RawKey: e.key, RawValue: e.value, Page: p.id, Offset: p.offset + int64(e.at)}
		at := &Damage{Page: el.Page, Offset: el.Offset, Bucket: w.reader.bucket}
		switch {
		case e.bucket:
			at.What = "a bucket inside a bucket, which etcd never makes"
			_ = w.damage(at)
		case w.reader.bucket == KeyBucket:
			rec, err := DecodeRecord(el)
			if err != nil {
				at.What = err.Error()
				_ = w.damage(at)
			}
			if rec.Rev == (Revision{}) {
				continue
			}
			var one span
			one.add(rec.Rev, rec.Tombstone)
			w.add(&one, rec.place())
		}
	}
	return nil
}

// span looks at the summary of a leaf.
func (w *streamWalk) span(c child, s *span) error {
	if err := w.reader.enter(c); err != nil {
		return err
	}
	at := place{rev: s.first, page: c.id, offset: int64(c.id) * int64(w.page)}
	wrong := func(what string, args ...any) error {
		return &Damage{Page: c.id, Offset: at.offset, Bucket: KeyBucket, What: fmt.Sprintf(what, args...)}
	}
	for i := uint64(1); i <= uint64(s.overflow); i++ {
		if !w.reader.reached.add(c.id + i) {
			return wrong("overflows into page %d, which is used elsewhere", c.id+i)
		}
	}
	first, last := revisionKey(s.first, s.firstGone), revisionKey(s.last, s.lastGone)
	switch {
	case c.lower != nil && string(c.lower) != string(first):
		return wrong("the first key %s is not the one in the page above, %s", show(first), show(c.lower))
	case c.upper != nil && string(last) >= string(c.upper):
		return wrong("the last key %s is not below the next page's first, %s", show(last), show(c.upper))
	}
	w.add(s, at)
	return nil
}

// add counts revisions and looks for the first gap.
func (w *streamWalk) add(s *span, at place) {
	w.report.Revisions += int(s.count)
	w.report.Tombstones += int(s.tombstones)
	gap := at.gapAfter(w.last, w.compact)
	if gap == nil && s.jump {
		at.rev = s.to
		gap = at.gapAfter(s.from, w.compact)
	}
	w.last = s.last
	if gap != nil && !w.gap {
		w.gap = true
		_ = w.damage(gap)
	}
}

// revisionKey is the inverse of ParseRevision.
func revisionKey(rev Revision, tombstone bool) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, tombstoneSize), uint64(rev.Main))
	b = binary.BigEndian.AppendUint64(append(b, '_'), uint64(rev.Sub))
	if tombstone {
		b = append(b, 't')
	}
	return b
}
