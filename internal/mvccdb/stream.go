package mvccdb

import (
	"context"
	"fmt"
	"io"
)

// Bounds of an examination of a stream.
const (
	// streamMemory bounds what is kept of a database on its way. It is enough for
	// about one gibibyte.
	streamMemory = 48 << 20
	streamPiece  = 256 << 10
	streamPieces = 4
	// streamOverflow bounds the pages that one leaf may have. etcd's requests,
	// and with them its leaves, are far smaller.
	streamOverflow = 8192
)

// Streamed is what an examination found in a database that streamed by.
type Streamed struct {
	Revision   int64 // the current one
	Revisions  int
	Tombstones int
	State      State

	Damage      []*Damage // the first of it
	DamageCount int

	// Unexamined says why the database could not be examined in one pass, ""
	// where it was.
	Unexamined string
}

// Examiner checks a database that passes by in the order of its pages, as
// etcd sends it: the structure of all pages that a tree reaches, every revision
// in them, and the small buckets. It keeps the pages above the leaves and a
// summary of each leaf, because only the end tells which pages are in use.
//
// What needs the revisions in order it does not see: hashes, the number of live
// keys, and whether the versions of a key follow each other.
type Examiner struct {
	full, free chan []byte
	done       chan struct{}
	piece      []byte
	pages      pageStream // of the goroutine that reads full
}

// NewExaminer returns an examiner. Close or Finish must be called.
func NewExaminer() *Examiner {
	x := &Examiner{full: make(chan []byte, streamPieces), free: make(chan []byte, streamPieces), done: make(chan struct{})}
	for range streamPieces {
		x.free <- make([]byte, 0, streamPiece)
	}
	go func() {
		defer close(x.done)
		for p := range x.full {
			x.pages.write(p)
			x.free <- p[:0]
		}
	}()
	return x
}

// Write takes the next bytes. It never fails, and waits where the examination
// is slower than the stream.
func (x *Examiner) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if x.piece == nil {
			x.piece = <-x.free
		}
		take := min(len(p), cap(x.piece)-len(x.piece))
		x.piece, p = append(x.piece, p[:take]...), p[take:]
		if len(x.piece) == cap(x.piece) {
			x.full <- x.piece
			x.piece = nil
		}
	}
	return n, nil
}

// Close ends an examination whose result nobody wants any more.
func (x *Examiner) Close() {
	if x.full != nil {
		close(x.full)
		<-x.done
		x.full = nil
	}
}

// Finish returns what was found in everything that was written.
func (x *Examiner) Finish(ctx context.Context) (*Streamed, error) {
	if len(x.piece) > 0 {
		x.full <- x.piece
		x.piece = nil
	}
	x.Close()
	return x.pages.finish(ctx)
}

// pageStream cuts a stream into pages and keeps what the end needs.
type pageStream struct {
	size int64
	page int    // bytes of a page, 0 before the first one
	part []byte // of the next page
	next uint64 // its number

	raw   map[uint64][]byte // pages above leaves, and leaves of small buckets, whole
	spans []span            // of leaves of the key bucket
	index map[uint64]int    // in spans, by page
	wrong map[uint64]fault
	open  []*openPage
	kept  int64

	unexamined string
}

// span is the summary of a leaf of the key bucket: clean, and in order.
type span struct {
	first, last         Revision
	firstGone, lastGone bool // deletions
	jump                bool
	from, to            Revision // the last place where a revision does not follow the one before
	count, tombstones   int32
	overflow            uint32
}

const spanBytes = 160 // with its place in the index

// openPage is a page that overflows, of which the rest is to come.
type openPage struct {
	id   uint64
	data []byte
	want int
}

func (s *pageStream) write(p []byte) {
	s.size += int64(len(p))
	if s.unexamined != "" {
		return
	}
	for len(p) > 0 && s.unexamined == "" {
		if s.page == 0 {
			n := min(metaEnd-len(s.part), len(p))
			s.part, p = append(s.part, p[:n]...), p[n:]
			if len(s.part) == metaEnd {
				s.begin()
			}
			continue
		}
		if len(s.part) == 0 && len(p) >= s.page { // most of the time
			s.take(p[:s.page])
			p = p[s.page:]
			continue
		}
		n := min(s.page-len(s.part), len(p))
		s.part, p = append(s.part, p[:n]...), p[n:]
		if len(s.part) == s.page {
			s.take(s.part)
			s.part = s.part[:0]
		}
	}
}

// begin reads the size of a page from the first one.
func (s *pageStream) begin() {
	m, wrong := parseMeta(s.part, 0)
	if wrong != "" {
		s.unexamined = wrong
		return
	}
	s.page = int(m.pageSize)
	s.raw, s.index, s.wrong = map[uint64][]byte{}, map[uint64]int{}, map[uint64]fault{}
}

// take looks at the next whole page, which may be a free one that holds what
// was there before: nothing in it is damage unless a tree reaches it.
func (s *pageStream) take(b []byte) {
	id := s.next
	s.next++
	if id < 2 {
		s.keep(id, b)
		return
	}
	s.open = deleteDone(s.open, func(o *openPage) bool {
		o.data = append(o.data, b...)
		if len(o.data) < o.want {
			return false
		}
		s.judge(o.id, o.data)
		s.kept -= int64(o.want)
		return true
	})
	h := parseHeader(b)
	switch {
	case h.id != id || (h.flags != flagLeaf && h.flags != flagBranch):
		return
	case h.overflow == 0:
		s.judge(id, b)
	case h.overflow <= streamOverflow:
		o := &openPage{id: id, want: (int(h.overflow) + 1) * s.page}
		o.data = append(make([]byte, 0, o.want), b...)
		s.open = append(s.open, o)
		s.use(int64(o.want))
	default:
		s.fault(id, fault{12, fmt.Sprintf("%d overflow pages, more than any database of etcd has", h.overflow)})
	}
}

func deleteDone(list []*openPage, done func(*openPage) bool) []*openPage {
	rest := list[:0]
	for _, o := range list {
		if !done(o) {
			rest = append(rest, o)
		}
	}
	return rest
}

// use counts memory, and gives up where there is too much.
func (s *pageStream) use(n int64) {
	if s.kept += n; s.kept > streamMemory {
		s.unexamined = "the database is too large to be examined while it streams by"
		s.raw, s.spans, s.index, s.wrong, s.open = nil, nil, nil, nil, nil
	}
}

func (s *pageStream) keep(id uint64, b []byte) {
	s.raw[id] = append([]byte(nil), b...)
	s.use(int64(len(b)))
}

func (s *pageStream) fault(id uint64, f fault) {
	s.wrong[id] = f
	s.use(spanBytes)
}

// judge keeps what the end needs of a page with all its overflow.
func (s *pageStream) judge(id uint64, b []byte) {
	if s.unexamined != "" {
		return
	}
	p := &page{header: parseHeader(b), offset: int64(id) * int64(s.page), data: b}
	end, f := p.check(false)
	if f == nil {
		f = p.checkOverflow(end, s.page)
	}
	if f == nil {
		f = p.checkKeys(nil, nil)
	}
	switch {
	case f != nil:
		s.fault(id, *f)
	case p.flags == flagBranch || p.count == 0 || !isRevision(p.element(0).key):
		s.keep(id, b)
	default:
		if sp, ok := spanOf(p); ok {
			s.index[id] = len(s.spans)
			s.spans = append(s.spans, sp)
			s.use(spanBytes)
		} else {
			s.keep(id, b) // the end says what is wrong with it
		}
	}
}

func isRevision(key []byte) bool {
	_, _, err := ParseRevision(key)
	return err == nil
}

// spanOf sums up a leaf of the key bucket, unless something is wrong with it.
func spanOf(p *page) (s span, ok bool) {
	s.overflow = p.overflow
	for i := range int(p.count) {
		e := p.element(i)
		if e.bucket {
			return s, false
		}
		rec, err := DecodeRecord(Element{RawKey: e.key, RawValue: e.value})
		if err != nil {
			return s, false
		}
		s.add(rec.Rev, rec.Tombstone)
	}
	return s, true
}

func (s *span) add(rev Revision, gone bool) {
	switch {
	case s.count == 0:
		s.first, s.firstGone = rev, gone
	case !follows(s.last, rev):
		s.jump, s.from, s.to = true, s.last, rev
	}
	s.last, s.lastGone = rev, gone
	s.count++
	if gone {
		s.tombstones++
	}
}

// follows reports whether nothing is missing between two revisions.
func follows(last, next Revision) bool {
	return next == Revision{Main: last.Main, Sub: last.Sub + 1} || next == Revision{Main: last.Main + 1}
}

// ReadAt reads kept pages. A page that was not kept reads as zeroes, which is
// damage wherever a tree leads to it.
func (s *pageStream) ReadAt(b []byte, at int64) (int, error) {
	clear(b)
	ps := int64(s.page)
	for n := 0; n < len(b); {
		if at+int64(n) >= s.size {
			return n, io.EOF
		}
		id, in := uint64((at+int64(n))/ps), int((at+int64(n))%ps)
		raw := s.raw[id]
		if len(raw) > in {
			n += copy(b[n:], raw[in:])
			continue
		}
		n += min(len(b)-n, int(ps)-in)
	}
	return len(b), nil
}
