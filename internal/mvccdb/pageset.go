package mvccdb

import (
	"fmt"
	"iter"
	"sync/atomic"
)

// PageSet is a set of page numbers. The zero value is ready for use; a scan
// sizes it. Its use while a scan runs is up to the scan.
type PageSet struct {
	words []uint64
}

func (s *PageSet) reset(pages uint64) {
	s.words = make([]uint64, (pages+63)/64)
}

// add puts a page into the set and reports whether it was new.
func (s *PageSet) add(id uint64) bool {
	bit := uint64(1) << (id % 64)
	return atomic.OrUint64(&s.words[id/64], bit)&bit == 0
}

// Has reports whether the set holds a page.
func (s *PageSet) Has(id uint64) bool {
	return id/64 < uint64(len(s.words)) && s.words[id/64]&(1<<(id%64)) != 0
}

// Run is a range of pages: Count of them, from First on.
type Run struct {
	First, Count uint64
}

// maxRun bounds a run, so that it can be read at once.
const maxRun = 256

// Unreachable yields the pages that are not in reached, up to the end of the
// file, in runs of at most a mebibyte or so. With etcd's files those are the
// free pages: what they hold was deleted, or replaced by newer copies, and
// stays until the page is used again or the database defragmented.
func (db *DB) Unreachable(reached *PageSet) iter.Seq[Run] {
	pages := uint64(db.size) / uint64(db.meta.pageSize)
	return func(yield func(Run) bool) {
		var run Run
		for id := uint64(2); id < pages; id++ {
			free := !reached.Has(id)
			if free && run.Count > 0 && run.Count < maxRun {
				run.Count++
				continue
			}
			if run.Count > 0 && !yield(run) {
				return
			}
			run = Run{}
			if free {
				run = Run{First: id, Count: 1}
			}
		}
		if run.Count > 0 {
			yield(run)
		}
	}
}

// ReadPages reads the bytes of a run, into buf where that is large enough.
func (db *DB) ReadPages(run Run, buf []byte) ([]byte, error) {
	size := run.Count * uint64(db.meta.pageSize)
	if uint64(cap(buf)) < size {
		buf = make([]byte, size)
	}
	buf = buf[:size]
	if err := db.readAt(buf, int64(run.First)*int64(db.meta.pageSize)); err != nil {
		return nil, fmt.Errorf("read page %d: %w", run.First, err)
	}
	return buf, nil
}

// FileSize returns the size of the file in bytes, with what follows the last
// whole page.
func (db *DB) FileSize() int64 { return db.file }

// ReadBytes reads the bytes [from, to) of the file, into buf where that is large
// enough. What lies behind the end of the file is left out.
func (db *DB) ReadBytes(from, to int64, buf []byte) ([]byte, error) {
	from, to = max(from, 0), min(to, db.file)
	size := max(to-from, 0)
	if int64(cap(buf)) < size {
		buf = make([]byte, size)
	}
	buf = buf[:size]
	if n, err := db.r.ReadAt(buf, from); n < len(buf) {
		return nil, fmt.Errorf("read byte %d: %w", from+int64(n), err)
	}
	return buf, nil
}
