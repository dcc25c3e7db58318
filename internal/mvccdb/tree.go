package mvccdb

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// maxDepth bounds the height of a tree. bbolt's fan-out reaches the largest
// possible file long before.
const maxDepth = 64

// maxOverflow bounds the size of one page with its overflow, so that a broken
// number cannot ask for all memory. etcd's requests are far smaller.
const maxOverflow = 1 << 30

// child points to a page from the page above it.
type child struct {
	id           uint64
	lower, upper []byte // the first key of the page, and the first one after it; nil if unknown
	from         int64  // offset of the element that points here
}

// root is a bucket's tree, as its entry in the root of the file says.
type root struct {
	name   string
	page   uint64 // 0 for an inline bucket
	inline []byte
	offset int64 // of the bucket's entry
}

// reader follows the trees of a database, and gives every fault a place.
type reader struct {
	db      *DB
	reached *PageSet
	bucket  string
}

// damage gives a fault of a page its place.
func (r *reader) damage(p *page, f *fault) *Damage {
	return &Damage{Page: p.id, Offset: p.offset + int64(f.at), Bucket: r.bucket, What: f.what}
}

// enter checks that c points to a page that exists and was not used before,
// so that no walk goes in circles.
func (r *reader) enter(c child) error {
	ps := int64(r.db.meta.pageSize)
	at := &Damage{Page: uint64(c.from / ps), Offset: c.from, Bucket: r.bucket}
	switch {
	case c.id < 2:
		at.What = fmt.Sprintf("points to meta page %d as to data", c.id)
	case c.id >= r.db.meta.pages:
		at.What = fmt.Sprintf("points to page %d, past the last one in use, %d", c.id, r.db.meta.pages-1)
	case c.id >= r.db.present():
		at.What = fmt.Sprintf("points to page %d, past the end of the file", c.id)
	case !r.reached.add(c.id):
		at.What = fmt.Sprintf("points to page %d, which is used elsewhere: a cycle, or a page with two owners", c.id)
	default:
		return nil
	}
	return at
}

// load makes the page of c, which was entered, out of buf: bytes of the file
// from that page on. It reads more where the page reaches further.
func (r *reader) load(c child, buf []byte) (*page, error) {
	ps := int(r.db.meta.pageSize)
	p := &page{header: parseHeader(buf), offset: int64(c.id) * int64(ps)}
	switch {
	case p.id != c.id:
		f := faultf(0, "carries the page number %d", p.id)
		p.id = c.id
		return nil, r.damage(p, f)
	case p.flags != flagLeaf && p.flags != flagBranch:
		return nil, r.damage(p, faultf(8, "page type %#x, want a branch or a leaf", p.flags))
	case uint64(p.overflow) >= r.db.present()-c.id:
		return nil, r.damage(p, faultf(12, "%d overflow pages reach past the end", p.overflow))
	case int64(p.overflow)*int64(ps) > maxOverflow:
		return nil, r.damage(p, faultf(12, "%d overflow pages, more than any database of etcd has", p.overflow))
	}
	size := (int(p.overflow) + 1) * ps
	if size <= len(buf) {
		p.data = buf[:size:size]
	} else {
		p.data = make([]byte, size)
		if err := r.db.readAt(p.data, p.offset); err != nil {
			return nil, r.readError(p.id, err)
		}
	}
	for i := uint64(1); i <= uint64(p.overflow); i++ {
		if !r.reached.add(p.id + i) {
			return nil, r.damage(p, faultf(12, "overflows into page %d, which is used elsewhere", p.id+i))
		}
	}
	return p, r.verify(p, c)
}

// verify checks everything about a loaded page.
func (r *reader) verify(p *page, c child) error {
	end, f := p.check(false)
	if f == nil {
		f = p.checkOverflow(end, int(r.db.meta.pageSize))
	}
	if f != nil {
		return r.damage(p, f)
	}
	if f := p.checkKeys(c.lower, c.upper); f != nil {
		return r.damage(p, f)
	}
	return nil
}

// read reads the single page of c, which was entered.
func (r *reader) read(c child) (*page, error) {
	buf := make([]byte, r.db.meta.pageSize)
	if err := r.db.readAt(buf, int64(c.id)*int64(len(buf))); err != nil {
		return nil, r.readError(c.id, err)
	}
	return r.load(c, buf)
}

// readError gives an error of reading a page its place.
func (r *reader) readError(id uint64, err error) error {
	if d, ok := errors.AsType[*Damage](err); ok {
		d.Bucket = r.bucket
		return d
	}
	return fmt.Errorf("read page %d: %w", id, err)
}

// children returns what the branch page of c points to.
func (r *reader) children(p *page, c child) []child {
	list := make([]child, p.count)
	for i := range list {
		e := p.element(i)
		list[i] = child{id: e.child, lower: e.key, from: p.offset + int64(e.at)}
		if i > 0 {
			list[i-1].upper = e.key
		}
	}
	if len(list) > 0 {
		list[len(list)-1].upper = c.upper
	}
	return list
}

// walk visits the leaf pages below c in key order, one by one. visit gets the
// damage of pages that cannot be used, and ends the walk with an error.
func (r *reader) walk(c child, depth int, visit func(*page, error) error) error {
	p, err := r.open(c, depth)
	if err != nil || p.flags == flagLeaf {
		return visit(p, err)
	}
	for _, below := range r.children(p, c) {
		if err := r.walk(below, depth+1, visit); err != nil {
			return err
		}
	}
	return nil
}

// open enters and reads the page of c.
func (r *reader) open(c child, depth int) (*page, error) {
	if depth > maxDepth {
		return nil, &Damage{Page: c.id, Offset: c.from, Bucket: r.bucket, What: fmt.Sprintf("the tree is deeper than %d pages", maxDepth)}
	}
	if err := r.enter(c); err != nil {
		return nil, err
	}
	return r.read(c)
}

// roots reads the root of the file and returns the trees of its buckets, in
// the order of their names.
func (r *reader) roots(visit func(error) error) ([]root, error) {
	var list []root
	at := child{id: r.db.meta.root}
	err := r.walk(at, 0, func(p *page, err error) error {
		if err != nil {
			return visit(err)
		}
		for i := range int(p.count) {
			entry, err := r.root(p, p.element(i))
			if err != nil {
				if err := visit(err); err != nil {
					return err
				}
				continue
			}
			list = append(list, entry)
		}
		return nil
	})
	return list, err
}

// bucketHeaderSize is the size of a bucket's entry: its root page and a
// sequence number. An inline bucket's only page follows.
const bucketHeaderSize = 16

// root reads a bucket's entry.
func (r *reader) root(p *page, e element) (root, error) {
	if !e.bucket {
		return root{}, r.damage(p, faultf(e.at, "the root holds key %s, which is no bucket", show(e.key)))
	}
	if len(e.value) < bucketHeaderSize {
		return root{}, r.damage(p, faultf(e.at, "the entry of bucket %q has %d bytes", e.key, len(e.value)))
	}
	b := root{name: string(e.key), page: binary.LittleEndian.Uint64(e.value), offset: p.offset + int64(e.at)}
	inline := e.value[bucketHeaderSize:]
	switch {
	case b.page != 0 && len(inline) > 0:
		return root{}, r.damage(p, faultf(e.at, "bucket %q has both a root page and an inline page", e.key))
	case binary.LittleEndian.Uint64(e.value[8:]) != 0:
		return root{}, r.damage(p, faultf(e.at, "the entry of bucket %q has a sequence number, which etcd never sets", e.key))
	case b.page == 0 && len(inline) < pageHeaderSize:
		return root{}, r.damage(p, faultf(e.at, "bucket %q has neither a root page nor an inline page", e.key))
	}
	b.inline = inline
	return b, nil
}

// inlinePage reads the page of an inline bucket.
func (r *reader) inlinePage(b root) (*page, error) {
	p := &page{header: parseHeader(b.inline), offset: b.offset, data: b.inline}
	at := &page{header: header{id: uint64(b.offset) / uint64(r.db.meta.pageSize)}, offset: b.offset}
	_, f := p.check(true)
	if f == nil {
		f = p.checkKeys(nil, nil)
	}
	if f == nil && (p.id != 0 || p.overflow != 0) {
		f = faultf(0, "an inline page with a number")
	}
	if f != nil {
		f.at = 0
		return nil, r.damage(at, f)
	}
	p.id = at.id
	return p, nil
}
