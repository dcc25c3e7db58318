package mvccdb

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Patch is bytes that belong at a place of a file.
type Patch struct {
	Offset int64
	Bytes  []byte
}

// Freelist returns what makes bbolt open a copy of the database at once. etcd's
// files keep no list of free pages, so that bbolt walks all trees to find
// them. The patches give it a list of one page, in a free page itself, with as
// many of the free pages as it can hold. Transactions of few pages that keep
// no freelist then leave a file as etcd's are.
//
// There are none where the database has a list already.
func (db *DB) Freelist(free []Run) ([]Patch, error) {
	if db.meta.freelist != noFreelist {
		return nil, nil
	}
	pages, at := db.meta.pages, uint64(0)
	var ids []uint64
	for _, run := range free {
		for id := run.First; id < run.First+run.Count && len(ids) < db.PageSize()/8-pageHeaderSize/8; id++ {
			if at == 0 {
				at = id
				continue
			}
			ids = append(ids, id)
		}
	}
	if at == 0 { // no page is free: one more
		at = pages
		pages++
	}
	meta := make([]byte, metaEnd)
	if err := db.readAt(meta, db.metaAt); err != nil {
		return nil, fmt.Errorf("read the meta page: %w", err)
	}
	if _, wrong := parseMeta(meta, 0); wrong != "" {
		return nil, errors.New(wrong)
	}
	le, body := binary.LittleEndian, meta[pageHeaderSize:]
	le.PutUint64(body[32:], at)
	le.PutUint64(body[40:], pages)
	le.PutUint64(body[metaSize-8:], metaSum(body))
	return []Patch{
		{Offset: int64(at) * int64(db.PageSize()), Bytes: freelistPage(at, ids, db.PageSize())},
		{Offset: db.metaAt, Bytes: meta},
	}, nil
}

// freelistPage makes a page that lists free pages.
func freelistPage(id uint64, free []uint64, size int) []byte {
	b, le := make([]byte, size), binary.LittleEndian
	le.PutUint64(b, id)
	le.PutUint16(b[8:], flagFreelist)
	le.PutUint16(b[10:], uint16(len(free)))
	for i, f := range free {
		le.PutUint64(b[pageHeaderSize+8*i:], f)
	}
	return b
}

// manyPages in a page's count tells that the count is the first number of its
// content.
const manyPages = 0xffff

// freelistDamage tells what is wrong with a stored list of free pages: bbolt
// writes over whatever it names. It needs all pages that a scan reached. What is
// wrong with the list's page itself the scan has told.
func (db *DB) freelistDamage(reached *PageSet) ([]*Damage, error) {
	id, ps := db.meta.freelist, uint64(db.meta.pageSize)
	if id == noFreelist || id < 2 || id >= db.present() {
		return nil, nil
	}
	at := func(what string, args ...any) []*Damage {
		return []*Damage{{Page: id, Offset: int64(id * ps), What: fmt.Sprintf(what, args...)}}
	}
	head := make([]byte, pageHeaderSize)
	if err := db.readAt(head, int64(id*ps)); err != nil {
		return nil, fmt.Errorf("read the list of free pages: %w", err)
	}
	h := parseHeader(head)
	if h.id != id || h.flags != flagFreelist || uint64(h.overflow) >= db.present()-id || int64(h.overflow)*int64(ps) > maxOverflow {
		return nil, nil
	}
	list, err := db.ReadPages(Run{First: id, Count: uint64(h.overflow) + 1}, nil)
	if err != nil {
		return nil, err
	}
	list, count := list[pageHeaderSize:], uint64(h.count)
	if count == manyPages {
		list, count = list[8:], binary.LittleEndian.Uint64(list)
	}
	if count > uint64(len(list)/8) {
		return at("the list of free pages names %d pages, more than it has room for", count), nil
	}
	var seen PageSet
	seen.reset(db.meta.pages)
	for i := range count {
		switch free := binary.LittleEndian.Uint64(list[8*i:]); {
		case free < 2 || free >= db.meta.pages:
			return at("the list of free pages names page %d of %d", free, db.meta.pages), nil
		case reached.Has(free):
			return at("the list of free pages names page %d, which is in use: etcd would write over it", free), nil
		case !seen.add(free):
			return at("the list of free pages names page %d twice", free), nil
		}
	}
	return nil, nil
}
