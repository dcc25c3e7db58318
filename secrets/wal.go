package secrets

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// walPut is a put in the write-ahead log. Its slices are valid during the call
// that gets it.
type walPut struct {
	index      uint64 // of the entry; 0 for bytes that are in no record
	key, value []byte
	complete   bool // the value's end is there
}

// walLog reads the write-ahead log of a member that may be running. It takes
// the bytes as they are: it stops in a segment where the records end, and
// searches the rest of the segment for puts that a crash or a repair left.
type walLog struct {
	dirs   [][]byte // beginnings of keys, for the search
	put    func(walPut) error
	damage func(string)

	bytes int64
}

const (
	maxTxn     = 16 // transactions in transactions
	tailWindow = 1 << 20
	lookBack   = 16      // before a key stand its tag and its length
	maxSegment = 1 << 30 // of which the end cannot be read; etcd's have 64 MiB
)

// read reads every file of the log's folder. Segments that a running member
// removes meanwhile are no concern; those that cannot be read are damage.
func (w *walLog) read(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read write-ahead log: %w", err)
	}
	segments := 0
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
			continue
		}
		if isSegment(e.Name()) {
			segments++
		}
		err := w.file(path)
		if _, failed := errors.AsType[*fs.PathError](err); failed && !errors.Is(err, fs.ErrNotExist) {
			w.damage(err.Error())
		} else if err != nil && !failed {
			return fmt.Errorf("read write-ahead log: %w", err)
		}
	}
	if segments == 0 {
		return fmt.Errorf("read write-ahead log: no segments in %s", dir)
	}
	return nil
}

// isSegment reports whether a file is a segment of a log by its name.
func isSegment(name string) bool {
	return strings.HasSuffix(name, ".wal") || strings.HasSuffix(name, ".wal.broken")
}

func (w *walLog) file(path string) (err error) {
	f, size, err := openRegular(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w.bytes += size
	if isSegment(path) {
		return w.segment(OSFile{f}, size, filepath.Base(path))
	}
	return w.tail(f, size)
}

// tail searches a file for puts by their bytes.
func (w *walLog) tail(f io.ReaderAt, size int64) error {
	return windows(f, size, w.search)
}

// windows hands on the bytes of a file piece by piece. What begins in the part
// [from, limit) of a piece is the piece's own; what is around it is context.
func windows(f io.ReaderAt, size int64, search func(data []byte, from, limit int) error) error {
	buf := make([]byte, lookBack+tailWindow+lookAhead)
	for at := int64(0); at < size; at += tailWindow {
		start := max(at-lookBack, 0)
		n, err := f.ReadAt(buf[:min(int64(len(buf)), size-start)], start)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		from := min(int(at-start), n)
		if err := search(buf[:n], from, min(n, from+tailWindow)); err != nil {
			return err
		}
	}
	return nil
}

// search looks for keys that begin in [from, limit).
func (w *walLog) search(data []byte, from, limit int) error {
	for _, dir := range w.dirs {
		for at := range occurrences(data, dir, from, limit) {
			rec, ok := putAt(data, at)
			if !ok {
				continue
			}
			p := walPut{key: rec.key.of(data), value: rec.value.of(data), complete: rec.value.to <= len(data)}
			if err := w.put(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// putAt reads the put whose key begins at at.
func putAt(data []byte, at int) (foundRecord, bool) {
	n := keyLength(data[:at])
	if n == 0 || at+n > len(data) {
		return foundRecord{}, false
	}
	rest := data[at+n:]
	num, typ, tag := protowire.ConsumeTag(rest)
	if tag < 0 || num != 2 || typ != protowire.BytesType {
		return foundRecord{}, false
	}
	size, m := protowire.ConsumeVarint(rest[tag:])
	if m < 0 || size == 0 {
		return foundRecord{}, false
	}
	from := at + n + tag + m
	return foundRecord{key: span{at, at + n}, value: span{from, from + int(min(size, math.MaxInt32))}, whole: true}, true
}
