package mvccdb

import (
	"context"
	"errors"
)

// work does tasks until there are no more.
func (s *scan[T]) work(ctx context.Context) error {
	w := &worker[T]{each: s.each}
	for t := range s.queue {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		w.reader = reader{db: s.db, reached: s.opts.Reached, bucket: t.bucket}
		w.task, w.first = t, t.first
		t.err = w.do()
		close(t.done)
	}
	return nil
}

// worker does tasks one at a time, with memory that it uses again.
type worker[T any] struct {
	reader
	each  func(*Batch) (T, error)
	task  *task[T]
	first bool
	buf   []byte
	batch Batch
}

func (w *worker[T]) do() error {
	if w.task.inline != nil {
		w.add(w.task.inline)
		return w.flush()
	}
	for rest := w.task.pages; len(rest) > 0; {
		n, err := w.group(rest)
		if err != nil {
			return err
		}
		if err := w.flush(); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// group reads the first pages of list that lie near each other at once, adds
// them to the batch, and returns their number.
func (w *worker[T]) group(list []child) (int, error) {
	entered, err := w.enterNear(list)
	if err != nil {
		return 1, w.fault(err)
	}
	ps := uint64(w.db.meta.pageSize)
	first, last := entered[0].id, entered[len(entered)-1].id
	size := (last - first + 1) * ps
	if uint64(cap(w.buf)) < size {
		w.buf = make([]byte, size)
	}
	buf := w.buf[:size]
	if err := w.db.readAt(buf, int64(first*ps)); err != nil {
		return len(entered), w.fault(w.readError(first, err))
	}
	for _, c := range entered {
		p, err := w.load(c, buf[(c.id-first)*ps:])
		switch {
		case err != nil:
			err = w.fault(err)
		case p.flags == flagBranch:
			err = w.below(p, c)
		default:
			w.add(p)
		}
		if err != nil {
			return 0, err
		}
	}
	return len(entered), nil
}

// enterNear enters the first pages of list that ascend closely enough to be
// read at once. The error is about the first one; where a later one cannot be
// entered, the next call begins with it.
func (w *worker[T]) enterNear(list []child) ([]child, error) {
	for i, c := range list {
		if i > 0 {
			before := list[i-1].id
			if c.id <= before || c.id-before > gapPages || c.id-list[0].id >= batchPages {
				return list[:i], nil
			}
		}
		switch err := w.enter(c); {
		case err != nil && i == 0:
			return nil, err
		case err != nil:
			return list[:i], nil
		}
	}
	return list, nil
}

// below walks what is below a branch page where leaves were expected.
func (w *worker[T]) below(p *page, c child) error {
	for _, next := range w.children(p, c) {
		err := w.walk(next, w.task.depth+1, func(p *page, err error) error {
			if err == nil {
				w.add(p)
			}
			return w.fault(err)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// fault notes damage, after the batch so far, and returns any other error.
func (w *worker[T]) fault(err error) error {
	if err == nil {
		return nil
	}
	d, ok := errors.AsType[*Damage](err)
	if !ok {
		return err
	}
	if err := w.flush(); err != nil {
		return err
	}
	w.task.results = append(w.task.results, result[T]{damage: d})
	return nil
}

// add puts the elements of a leaf page into the batch.
func (w *worker[T]) add(p *page) {
	w.batch.Pages += int(p.overflow) + 1
	for i := range int(p.count) {
		e := p.element(i)
		el := Element{RawKey: e.key, RawValue: e.value, Page: p.id, Offset: p.offset + int64(e.at)}
		if e.bucket {
			w.note(el, "a bucket inside a bucket, which etcd never makes")
			continue
		}
		w.batch.Elements = append(w.batch.Elements, el)
		if w.bucket != KeyBucket {
			continue
		}
		rec, err := DecodeRecord(el)
		if err != nil {
			w.note(el, err.Error())
			if rec.Rev != (Revision{}) {
				w.batch.undecoded = append(w.batch.undecoded, rec.place())
			}
			continue
		}
		w.batch.Records = append(w.batch.Records, rec)
	}
}

// note notes damage of an element.
func (w *worker[T]) note(el Element, what string) {
	w.task.results = append(w.task.results, result[T]{
		damage: &Damage{Page: el.Page, Offset: el.Offset, Bucket: w.bucket, What: what},
	})
}

// flush hands the batch to the user and begins a new one. The first batch of a
// bucket is handed on even if empty.
func (w *worker[T]) flush() error {
	if len(w.batch.Elements) == 0 && w.batch.Pages == 0 && !w.first {
		return nil
	}
	w.batch.Bucket, w.batch.First = w.bucket, w.first
	value, err := w.each(&w.batch)
	pages := w.batch.Pages
	w.batch = Batch{Elements: w.batch.Elements[:0], Records: w.batch.Records[:0], undecoded: w.batch.undecoded[:0]} // after an error, too: another task may follow
	if err != nil {
		return err
	}
	w.task.results = append(w.task.results, result[T]{value: value, pages: pages})
	w.first = false
	return nil
}
