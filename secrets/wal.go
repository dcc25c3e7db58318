package secrets

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
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
	walEntry   = 2 // types of records
	walCRC     = 4
	frameSize  = 8
	maxTxn     = 16 // transactions in transactions
	tailWindow = 1 << 20
)

// read reads every file of the log's folder. Segments that a running member
// removes meanwhile are no concern.
func (w *walLog) read(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read write-ahead log: %w", err)
	}
	segments := 0
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		segment := strings.HasSuffix(e.Name(), ".wal") || strings.HasSuffix(e.Name(), ".wal.broken")
		if segment {
			segments++
		}
		if err := w.file(filepath.Join(dir, e.Name()), segment); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("read write-ahead log: %w", err)
		}
	}
	if segments == 0 {
		return fmt.Errorf("read write-ahead log: no segments in %s", dir)
	}
	return nil
}

func (w *walLog) file(path string, segment bool) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	w.bytes += info.Size()
	end := int64(0)
	if segment {
		s := walSegment{walLog: w, in: bufio.NewReaderSize(f, 1<<20), size: info.Size(), name: filepath.Base(path)}
		if err := s.records(); err != nil {
			return err
		}
		end = s.at
	}
	return w.tail(f, end, info.Size())
}

// walSegment is a segment being read.
type walSegment struct {
	*walLog
	in   *bufio.Reader
	size int64
	name string
	at   int64 // end of the last good record
	sum  uint32
	buf  []byte
}

// records reads records up to the end, which is a frame of zeroes, the end of
// the file, or a frame that makes no sense: a torn tail.
func (s *walSegment) records() error {
	for {
		head, err := s.in.Peek(frameSize)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(head) < frameSize {
			return nil
		}
		length := binary.LittleEndian.Uint64(head)
		size, pad := int64(length&^(0xff<<56)), int64(0)
		if length>>63 == 1 {
			pad = int64(length >> 56 & 7)
		}
		if size == 0 || size > s.size-s.at-frameSize-pad {
			return nil
		}
		if _, err := s.in.Discard(frameSize); err != nil {
			return err
		}
		s.buf = slices.Grow(s.buf[:0], int(size+pad))[:size+pad]
		switch _, err := io.ReadFull(s.in, s.buf); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
		good, err := s.record(s.buf[:size])
		if !good || err != nil {
			return err
		}
		s.at += frameSize + size + pad
	}
}

// record takes one record. It is not good where it cannot be read, which ends
// the segment; one with a wrong checksum is damage, but its frame holds.
func (s *walSegment) record(b []byte) (good bool, err error) {
	var kind, sum uint64
	var data []byte
	ok := eachField(b, func(num protowire.Number, v uint64, content []byte) error {
		switch num {
		case 1:
			kind = v
		case 2:
			sum = v
		case 3:
			data = content
		}
		return nil
	}) == nil
	if !ok || kind == 0 {
		return false, nil
	}
	if kind == walCRC {
		s.sum = uint32(sum)
		return true, nil
	}
	s.sum = crc32.Update(s.sum, crc32.MakeTable(crc32.Castagnoli), data)
	if s.sum != uint32(sum) {
		if s.torn(b) {
			return false, nil
		}
		s.damage(fmt.Sprintf("%s: the record at byte %d has a wrong checksum", s.name, s.at))
		s.sum = uint32(sum)
	}
	if kind == walEntry {
		return true, s.entry(data)
	}
	return true, nil
}

// torn reports whether the record b, which has a wrong checksum, was torn by a
// crash while it was written: nothing follows, and a sector of it is zeroes.
func (s *walSegment) torn(b []byte) bool {
	if next, _ := s.in.Peek(frameSize); len(bytes.Trim(next, "\x00")) > 0 {
		return false
	}
	const sector = 512
	for at := s.at + frameSize; len(b) > 0; {
		n := min(sector-at%sector, int64(len(b)))
		if len(bytes.Trim(b[:n], "\x00")) == 0 {
			return true
		}
		b, at = b[n:], at+n
	}
	return false
}

// entry takes a raft entry: its index, and the puts in its request. What
// cannot be decoded is no request of etcd v3.
func (w *walLog) entry(b []byte) error {
	var index uint64
	var data []byte
	_ = eachField(b, func(num protowire.Number, v uint64, content []byte) error {
		switch num {
		case 3:
			index = v
		case 4:
			data = content
		}
		return nil
	})
	return w.request(index, data, 4, 6, 0)
}

// request looks for puts in a request, whose fields put and txn differ
// between the whole request and an operation of a transaction.
func (w *walLog) request(index uint64, b []byte, put, txn protowire.Number, depth int) error {
	if depth > maxTxn {
		return nil
	}
	err := eachField(b, func(num protowire.Number, _ uint64, content []byte) error {
		switch num {
		case put:
			return w.putRequest(index, content)
		case txn:
			return stop(eachField(content, func(num protowire.Number, _ uint64, op []byte) error {
				if num != 2 && num != 3 { // what to do on success and on failure
					return nil
				}
				return w.request(index, op, 2, 4, depth+1)
			}))
		}
		return nil
	})
	return stop(err)
}

func (w *walLog) putRequest(index uint64, b []byte) error {
	p := walPut{index: index, complete: true}
	err := eachField(b, func(num protowire.Number, _ uint64, content []byte) error {
		switch num {
		case 1:
			p.key = content
		case 2:
			p.value = content
		}
		return nil
	})
	if err != nil || len(p.key) == 0 || len(p.value) == 0 {
		return nil // no put after all
	}
	return w.put(p)
}

// errMessage says that bytes are no protobuf message.
var errMessage = errors.New("not a protobuf message")

// stop drops errMessage: what is no message holds nothing.
func stop(err error) error {
	if errors.Is(err, errMessage) {
		return nil
	}
	return err
}

// eachField visits the numbers and the contents of a message.
func eachField(b []byte, visit func(num protowire.Number, v uint64, content []byte) error) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errMessage
		}
		b = b[n:]
		var v uint64
		var content []byte
		switch typ {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			content, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(num, typ, b)
		}
		if n < 0 {
			return errMessage
		}
		if err := visit(num, v, content); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// tail searches a file from a place on for puts by their bytes.
func (w *walLog) tail(f io.ReaderAt, from, size int64) error {
	buf := make([]byte, tailWindow+lookAhead)
	for ; from < size; from += tailWindow {
		n, err := f.ReadAt(buf[:min(int64(len(buf)), size-from)], from)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if err := w.search(buf[:n], min(n, tailWindow)); err != nil {
			return err
		}
	}
	return nil
}

// search looks for keys that begin before limit.
func (w *walLog) search(data []byte, limit int) error {
	for _, dir := range w.dirs {
		for at := range occurrences(data[:min(limit+len(dir), len(data))], dir) {
			p, ok := putAt(data, at)
			if !ok {
				continue
			}
			if err := w.put(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// putAt reads the put whose key begins at at.
func putAt(data []byte, at int) (walPut, bool) {
	n := keyLength(data[:at])
	if n == 0 || at+n > len(data) {
		return walPut{}, false
	}
	rest := data[at+n:]
	num, typ, tag := protowire.ConsumeTag(rest)
	if tag < 0 || num != 2 || typ != protowire.BytesType {
		return walPut{}, false
	}
	size, m := protowire.ConsumeVarint(rest[tag:])
	if m < 0 || size == 0 || size > maxRecord {
		return walPut{}, false
	}
	rest = rest[tag+m:]
	end := min(size, uint64(len(rest)))
	return walPut{key: data[at : at+n], value: rest[:end], complete: end == size}, true
}
