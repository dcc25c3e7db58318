package secrets

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	walEntry   = 2 // types of records
	walCRC     = 4
	walTypes   = 5
	frameSize  = 8
	frameUnit  = 8       // frames begin at multiples of it
	sectorSize = 512     // what a disk writes whole or not at all
	maxFrame   = 1 << 28 // no record is longer
)

// walSegment is a segment being read.
type walSegment struct {
	*walLog
	file    File
	in      *bufio.Reader
	size    int64
	name    string
	at      int64 // end of what was read
	sum     uint32
	chained bool  // sum is that of the record before
	again   int64 // a place that was read once more
	tries   int
	buf     []byte
}

// segment reads a segment.
func (w *walLog) segment(file File, size int64, name string) error {
	s := &walSegment{walLog: w, file: file, size: size, name: name, chained: true, again: -1}
	s.seek(0)
	for {
		more, err := s.next()
		for !more && err == nil && s.mayBeInWriting() {
			more, err = s.next()
		}
		if !more && err == nil {
			more, err = s.skip()
		}
		if !more || err != nil {
			return err
		}
	}
}

// mayBeInWriting goes back to a record that cannot be read, once, because a
// running member may have written it at that moment.
func (s *walSegment) mayBeInWriting() bool {
	head := make([]byte, frameSize)
	if n, _ := s.file.ReadAt(head, s.at); len(bytes.Trim(head[:n], "\x00")) == 0 || s.again == s.at || s.tries >= maxTries {
		return false
	}
	s.again = s.at
	s.tries++
	s.seek(s.at)
	return true
}

// seek goes on reading at another place.
func (s *walSegment) seek(at int64) {
	s.at = at
	in := io.NewSectionReader(s.file, at, math.MaxInt64-at)
	if s.in == nil {
		s.in = bufio.NewReaderSize(in, 1<<20)
		return
	}
	s.in.Reset(in)
}

// next takes the next record. more is false at the end: a frame of zeroes, the
// end of the file, or something that is no record.
func (s *walSegment) next() (more bool, err error) {
	head, err := s.in.Peek(frameSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	size, pad, ok := frame(head)
	if !ok || size > s.size-s.at-frameSize {
		return false, nil
	}
	pad = min(pad, s.size-s.at-frameSize-size)
	if _, err := s.in.Discard(frameSize); err != nil {
		return false, err
	}
	s.buf = slices.Grow(s.buf[:0], int(size+pad))[:size+pad]
	switch _, err := io.ReadFull(s.in, s.buf); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return false, nil
	case err != nil:
		return false, err
	}
	rec, ok := parseRecord(s.buf[:size])
	if !ok || !s.follows(rec) {
		return false, nil
	}
	s.at += frameSize + size + pad
	if rec.kind == walEntry {
		return true, s.entry(rec.data)
	}
	return true, nil
}

// follows reports whether a record's checksum goes on from the one before.
func (s *walSegment) follows(rec walRecord) bool {
	switch {
	case rec.kind == walCRC, !s.chained: // the first one after a gap has to be believed
		s.sum, s.chained = rec.sum, true
		return true
	}
	sum := crc32.Update(s.sum, crc32.MakeTable(crc32.Castagnoli), rec.data)
	if sum != rec.sum {
		return false
	}
	s.sum = sum
	return true
}

// skip searches what follows for puts by their bytes, up to the next record
// that can be believed. more is false where none follows: that is damage, too,
// unless a crash explains it.
func (s *walSegment) skip() (more bool, err error) {
	end, err := lastByte(s.file, s.at, s.size)
	if err != nil || end <= s.at {
		return false, err // zeroes to the end, as a member prepares it
	}
	if end-s.at > maxSegment {
		return false, fmt.Errorf("%s: %d bytes behind byte %d are too many to search", s.name, end-s.at, s.at)
	}
	data := make([]byte, end-s.at)
	if _, err := s.file.ReadAt(data, s.at); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	if s.readable(data) {
		return false, nil // a running member went on since the end was read
	}
	gap := nextRecord(data)
	if gap < 0 {
		if !torn(data, s.at, s.size) {
			s.damage(fmt.Sprintf("%s: no record can be read from byte %d on", s.name, s.at))
		}
		return false, s.search(data, 0, len(data))
	}
	s.damage(fmt.Sprintf("%s: the %d bytes from byte %d on are no record, or have a wrong checksum", s.name, gap, s.at))
	if err := s.search(data[:gap], 0, gap); err != nil {
		return false, err
	}
	s.chained = false
	s.seek(s.at + int64(gap))
	return true, nil
}

// readable reports whether data begins with the record that belongs here: a
// running member has written it since.
func (s *walSegment) readable(data []byte) bool {
	size, pad, ok := frame(data)
	if !ok || size+pad > int64(len(data)-frameSize)+pad {
		return false
	}
	rec, ok := parseRecord(data[frameSize : frameSize+size])
	sum, chained := s.sum, s.chained
	ok = ok && s.follows(rec)
	s.sum, s.chained = sum, chained
	return ok
}

// lastByte returns where the last byte that is not zero ends, from a place on.
func lastByte(file io.ReaderAt, from, size int64) (end int64, err error) {
	buf := make([]byte, tailWindow)
	for at := size; at > from; {
		n := min(int64(len(buf)), at-from)
		read, err := file.ReadAt(buf[:n], at-n)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if rest := bytes.TrimRight(buf[:read], "\x00"); len(rest) > 0 {
			return at - n + int64(len(rest)), nil
		}
		at -= n
	}
	return from, nil
}

// nextRecord returns where a record begins behind the first frame, -1 if none
// does. data begins where a frame does.
func nextRecord(data []byte) int {
	for at := frameUnit; at+frameSize < len(data); at += frameUnit {
		size, pad, ok := frame(data[at:])
		if !ok || size+pad > int64(len(data)-at-frameSize)+frameUnit { // the padding may be cut off
			continue
		}
		body := data[at+frameSize:]
		if rec, ok := parseRecord(body[:min(size, int64(len(body)))]); ok && rec.plausible() {
			return at
		}
	}
	return -1
}

// torn reports whether data, all that is there from byte at on, is what a crash
// leaves of a record: its beginning, and then nothing but zeroes.
func torn(data []byte, at, size int64) bool {
	if len(data) < frameSize {
		return true
	}
	length, pad, ok := frame(data)
	if !ok || int64(len(data)) > frameSize+length+pad {
		return false
	}
	if at+frameSize+length+pad > size {
		return true // the file was cut off
	}
	for sector := sectorSize - at%sectorSize; sector < int64(len(data)); sector += sectorSize {
		part := data[sector:min(sector+sectorSize, int64(len(data)))]
		if len(bytes.Trim(part, "\x00")) == 0 {
			return false // something follows behind what was not written
		}
	}
	// What follows is zeroes from the next sector on, within the record.
	written := (at + int64(len(data)) + sectorSize - 1) / sectorSize * sectorSize
	return written < at+frameSize+length
}

// frame reads the length of a record and of its padding.
func frame(head []byte) (size, pad int64, ok bool) {
	if len(head) < frameSize {
		return 0, 0, false
	}
	length := binary.LittleEndian.Uint64(head)
	size = int64(length &^ (0xff << 56))
	if length>>63 == 1 {
		pad = int64(length >> 56 & 7)
	}
	return size, pad, size > 0 && size < maxFrame && (size+pad)%frameUnit == 0
}

// walRecord is a record of a segment.
type walRecord struct {
	kind uint64
	sum  uint32
	data []byte
}

func parseRecord(b []byte) (r walRecord, ok bool) {
	known := true
	err := eachField(b, func(num protowire.Number, v uint64, content []byte) error {
		switch num {
		case 1:
			r.kind = v
		case 2:
			known = known && v <= math.MaxUint32
			r.sum = uint32(v)
		case 3:
			r.data = content
		default:
			known = false
		}
		return nil
	})
	return r, err == nil && known && r.kind >= 1 && r.kind <= walTypes
}

// plausible reports whether bytes that read as a record are one, though the
// record before is not known.
func (r walRecord) plausible() bool {
	if r.kind == walCRC {
		return len(r.data) == 0 && r.sum != 0
	}
	if len(r.data) == 0 {
		return false
	}
	return eachField(r.data, func(protowire.Number, uint64, []byte) error { return nil }) == nil
}
