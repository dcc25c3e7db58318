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
