package mvccdb

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
)

// elementSize is the size of the header of an element, in branch and leaf
// pages alike.
const elementSize = 16

// header is the beginning of every page.
type header struct {
	id       uint64
	flags    uint16
	count    uint16
	overflow uint32 // number of pages that follow and belong to this one
}

func parseHeader(b []byte) header {
	le := binary.LittleEndian
	return header{id: le.Uint64(b), flags: le.Uint16(b[8:]), count: le.Uint16(b[10:]), overflow: le.Uint32(b[12:])}
}

// page is a branch or leaf page, with its overflow pages.
type page struct {
	header
	offset int64  // in the file; of the value for an inline bucket
	data   []byte // all of it, header included
}

// element is one element of a page. Branch elements have no value and no
// flags, leaf elements no child.
type element struct {
	key, value []byte
	child      uint64
	bucket     bool
	at         int // offset of the element's header in the page
}

// fault is something wrong inside a page.
type fault struct {
	at   int // offset in the page
	what string
}

func faultf(at int, format string, args ...any) *fault {
	return &fault{at: at, what: fmt.Sprintf(format, args...)}
}

// check tells what is wrong with the layout of a page. bbolt writes elements
// and their data without gaps and pads the page with zeroes, so the whole
// layout follows from the sizes, and anything else is damage. After a nil
// fault, the elements can be used without looking at bounds again, and end is
// where their data ends.
func (p *page) check(inline bool) (end int, f *fault) {
	if p.flags != flagLeaf && (p.flags != flagBranch || inline) {
		return 0, faultf(8, "page type %#x, want a branch or a leaf", p.flags)
	}
	end, f = p.checkElements()
	switch {
	case f != nil:
		return end, f
	case inline && end != len(p.data):
		return end, faultf(0, "an inline bucket of %d bytes holds %d", len(p.data), end)
	case !inline && !allZero(p.data[end:]):
		return end, faultf(end, "bytes follow the last element of the page")
	case p.flags == flagBranch && p.count == 0:
		return end, faultf(10, "a branch page without elements")
	}
	return end, nil
}

// checkOverflow checks that a page has the number of overflow pages that its
// content needs, which ends at end. bbolt gives a page that is filled to the
// last byte one more.
func (p *page) checkOverflow(end, pageSize int) *fault {
	need := (end+pageSize-1)/pageSize - 1
	if spare := int(p.overflow) - need; spare == 0 || (spare == 1 && end%pageSize == 0) {
		return nil
	}
	return faultf(12, "%d overflow pages, the content needs %d", p.overflow, need)
}

// checkElements walks the element headers and returns where their data ends.
func (p *page) checkElements() (end int, _ *fault) {
	le := binary.LittleEndian
	next := pageHeaderSize + int(p.count)*elementSize
	if next > len(p.data) {
		return 0, faultf(10, "%d elements do not fit into a page of %d bytes", p.count, len(p.data))
	}
	leaf := p.flags == flagLeaf
	for i := range int(p.count) {
		at := pageHeaderSize + i*elementSize
		h := p.data[at : at+elementSize]
		pos, ksize, vsize := uint64(le.Uint32(h)), uint64(le.Uint32(h[4:])), uint64(0)
		if leaf {
			flags := uint64(le.Uint32(h))
			pos, ksize, vsize = uint64(le.Uint32(h[4:])), uint64(le.Uint32(h[8:])), uint64(le.Uint32(h[12:]))
			if flags > 1 {
				return 0, faultf(at, "element %d has unknown flags %#x", i, flags)
			}
		}
		if pos != uint64(next-at) {
			return 0, faultf(at, "element %d points to byte %d of the page, its data is at %d", i, uint64(at)+pos, next)
		}
		if size := ksize + vsize; size > uint64(len(p.data)-next) {
			return 0, faultf(at, "element %d of %d bytes reaches out of its page", i, size)
		}
		if ksize == 0 {
			return 0, faultf(at, "element %d has an empty key", i)
		}
		next += int(ksize + vsize)
	}
	return next, nil
}

// element returns element i of a page that was checked.
func (p *page) element(i int) element {
	le := binary.LittleEndian
	at := pageHeaderSize + i*elementSize
	h := p.data[at : at+elementSize]
	if p.flags == flagBranch {
		from := at + int(le.Uint32(h))
		to := from + int(le.Uint32(h[4:]))
		return element{key: p.data[from:to:to], child: le.Uint64(h[8:]), at: at}
	}
	from := at + int(le.Uint32(h[4:]))
	mid := from + int(le.Uint32(h[8:]))
	to := mid + int(le.Uint32(h[12:]))
	return element{key: p.data[from:mid:mid], value: p.data[mid:to:to], bucket: le.Uint32(h) != 0, at: at}
}

// checkKeys tells whether the keys of a checked page ascend and lie between
// what its parent promises: the first key is lower, all are below upper. Nil
// bounds promise nothing.
func (p *page) checkKeys(lower, upper []byte) *fault {
	var last []byte
	for i := range int(p.count) {
		e := p.element(i)
		switch {
		case i == 0 && lower != nil && !bytes.Equal(e.key, lower):
			return faultf(e.at, "the first key %s is not the one in the page above, %s", show(e.key), show(lower))
		case i > 0 && bytes.Compare(last, e.key) >= 0:
			return faultf(e.at, "key %s of element %d does not follow %s", show(e.key), i, show(last))
		}
		last = e.key
	}
	if upper != nil && p.count > 0 && bytes.Compare(last, upper) >= 0 {
		return faultf(p.element(int(p.count)-1).at, "the last key %s is not below the next page's first, %s", show(last), show(upper))
	}
	return nil
}

// show prints a key of a page for an error. Keys in pages are revisions and
// names of etcd's own records; hex keeps the line whole whatever they hold.
func show(key []byte) string {
	const enough = 24
	if len(key) > enough {
		return fmt.Sprintf("%x... (%d bytes)", key[:enough], len(key))
	}
	return fmt.Sprintf("%x", key)
}

// allZero reports whether b holds nothing but zeroes.
func allZero(b []byte) bool {
	var zeroes [1024]byte
	for len(b) > len(zeroes) {
		if !bytes.Equal(b[:len(zeroes)], zeroes[:]) {
			return false
		}
		b = b[len(zeroes):]
	}
	return bytes.Equal(b, zeroes[:len(b)])
}

// Salvage yields the elements that can still be made out in b, the bytes of a
// page that no tree reaches: bbolt leaves old pages as they were. What does
// not look like a leaf page yields nothing.
func Salvage(b []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		if len(b) < pageHeaderSize {
			return
		}
		h := parseHeader(b)
		if h.flags != flagLeaf {
			return
		}
		le := binary.LittleEndian
		for i := range int(h.count) {
			at := pageHeaderSize + i*elementSize
			if at+elementSize > len(b) {
				return
			}
			e := b[at : at+elementSize]
			from := uint64(at) + uint64(le.Uint32(e[4:]))
			mid := from + uint64(le.Uint32(e[8:]))
			to := mid + uint64(le.Uint32(e[12:]))
			if mid > uint64(len(b)) || mid == from {
				continue
			}
			if !yield(b[from:mid:mid], b[mid:min(to, uint64(len(b)))]) {
				return
			}
		}
	}
}
