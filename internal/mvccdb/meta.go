package mvccdb

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
)

// bbolt's format: a page begins with a header, pages 0 and 1 are meta pages,
// written in turns, and the valid one of the higher transaction counts.
const (
	pageHeaderSize = 16
	metaSize       = 64
	metaEnd        = pageHeaderSize + metaSize

	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagMeta     = 0x04
	flagFreelist = 0x10

	metaMagic   = 0xED0CDAED
	metaVersion = 2

	minPageSize = 1 << 9
	maxPageSize = 1 << 24

	noFreelist = ^uint64(0)
)

// meta is the content of a meta page.
type meta struct {
	pageSize uint32
	root     uint64
	freelist uint64 // noFreelist in etcd's files
	pages    uint64 // number of pages in use, the high water mark
	txid     uint64
}

// parseMeta reads meta page number index, of which b holds at least metaEnd
// bytes. The text is what is wrong with it.
func parseMeta(b []byte, index int) (m meta, wrong string) {
	le := binary.LittleEndian
	body := b[pageHeaderSize:metaEnd]
	m = meta{
		pageSize: le.Uint32(body[8:]),
		root:     le.Uint64(body[16:]),
		freelist: le.Uint64(body[32:]),
		pages:    le.Uint64(body[40:]),
		txid:     le.Uint64(body[48:]),
	}
	switch {
	case le.Uint32(body) != metaMagic:
		return m, fmt.Sprintf("meta page %d has no database mark", index)
	case le.Uint32(body[4:]) != metaVersion:
		return m, fmt.Sprintf("meta page %d has format version %d, known is %d", index, le.Uint32(body[4:]), metaVersion)
	case le.Uint64(body[metaSize-8:]) != metaSum(body):
		return m, fmt.Sprintf("meta page %d has a wrong checksum", index)
	case m.pageSize < minPageSize || m.pageSize > maxPageSize || m.pageSize&(m.pageSize-1) != 0:
		return m, fmt.Sprintf("meta page %d gives a page size of %d", index, m.pageSize)
	case m.pages < 4 || m.root < 2 || m.root >= m.pages:
		return m, fmt.Sprintf("meta page %d has its root at page %d of %d", index, m.root, m.pages)
	}
	return m, ""
}

// metaSum is the checksum at the end of a meta page's body.
func metaSum(body []byte) uint64 {
	sum := fnv.New64a()
	sum.Write(body[:metaSize-8])
	return sum.Sum64()
}

// metaHeaderFault tells what is wrong with the header of a meta page, which
// its checksum does not cover.
func metaHeaderFault(b []byte, index int) string {
	h := parseHeader(b)
	switch {
	case h.id != uint64(index):
		return fmt.Sprintf("meta page %d carries the number %d", index, h.id)
	case h.flags != flagMeta || h.count != 0 || h.overflow != 0:
		return fmt.Sprintf("meta page %d has a broken page header", index)
	}
	return ""
}
