package snapshot

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/pkg/v3/crc"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"google.golang.org/protobuf/proto"

	"github.com/etcdkit/etcdkit/internal/regular"
)

// frameHeader is the length of a record, which stands before it. Records begin
// at its multiples.
const frameHeader = 8

// LogDamage says that a write-ahead log is damaged before its end.
type LogDamage struct {
	File   string
	Offset int64
	What   string
}

func (e *LogDamage) Error() string {
	return fmt.Sprintf("the write-ahead log is damaged at byte %d of %s: %s", e.Offset, e.File, e.What)
}

// segments returns the files of a write-ahead log, oldest first.
func segments(dir string) ([]string, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s holds no write-ahead log: %w", dir, fs.ErrNotExist)
	}
	slices.Sort(names)
	return names, nil
}

// walker reads the records of a write-ahead log in order and keeps none.
type walker struct {
	files []*os.File
	begun int // segments that the decoder has begun with
	dec   wal.Decoder
}

func openWalker(dir string) (w *walker, err error) {
	names, err := segments(dir)
	if err != nil {
		return nil, err
	}
	w = &walker{}
	var readers []fileutil.FileReader
	for _, name := range names {
		f, err := regular.Open(name)
		if err != nil {
			return nil, errors.Join(err, w.close())
		}
		w.files = append(w.files, f)
		readers = append(readers, fileutil.NewFileReader(f))
	}
	w.dec = wal.NewDecoder(readers...)
	return w, nil
}

func (w *walker) close() error {
	var errs []error
	for _, f := range w.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// walk calls visit with every record. torn reports that the last record was cut
// off while it was written. Damage is a *LogDamage.
func (w *walker) walk(ctx context.Context, visit func(*walpb.Record) error) (torn bool, err error) {
	rec := &walpb.Record{}
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		switch err := decodeRecord(w.dec, rec); {
		case errors.Is(err, io.EOF):
			return false, w.checkZeros(w.dec.LastOffset())
		case errors.Is(err, io.ErrUnexpectedEOF):
			return true, w.checkTorn()
		case err != nil:
			return false, w.damage(err)
		}
		if rec.GetType() == wal.CrcType { // the first record of every segment
			w.begun++
			if last := w.dec.LastCRC(); last != 0 && rec.GetCrc() != last {
				return false, w.damage(errors.New("the segment does not continue the one before: the checksums differ"))
			}
			w.dec.UpdateCRC(rec.GetCrc())
		}
		if err := visit(rec); err != nil {
			return false, err
		}
	}
}

// decodeRecord turns a panic of the decoder on damaged bytes into an error.
func decodeRecord(dec wal.Decoder, rec *walpb.Record) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the record cannot be decoded: %v", p)
		}
	}()
	return dec.Decode(rec)
}

// damage says where the decoder stands.
func (w *walker) damage(err error) error {
	at := min(max(w.begun, 1), len(w.files)) - 1
	return &LogDamage{File: w.files[at].Name(), Offset: w.dec.LastOffset(), What: err.Error()}
}

func (w *walker) last() *os.File { return w.files[len(w.files)-1] }

// checkZeros refuses a last segment that goes on after its end: etcd writes one
// record after the other into a file of zeros, so a hole was records once.
func (w *walker) checkZeros(from int64) error {
	at, err := firstNonZero(w.last(), from)
	if err != nil || at < 0 {
		return err
	}
	return &LogDamage{File: w.last().Name(), Offset: from, What: fmt.Sprintf("no record, but bytes follow at %d", at)}
}

// checkTorn refuses a record that cannot be decoded where it is not the last
// one. etcd cuts the log there, and with it what follows.
func (w *walker) checkTorn() error {
	at := w.dec.LastOffset()
	f := w.last()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	var header [frameHeader]byte
	if _, err := f.ReadAt(header[:], at); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if size, pad := frameSize(header[:]); at+frameHeader+size+pad <= info.Size() {
		return w.checkZeros(at + frameHeader + size + pad)
	}
	follows, err := recordsFollow(f, at+frameHeader, info.Size())
	if err != nil || !follows {
		return err
	}
	return &LogDamage{File: f.Name(), Offset: at, What: "the length of a record is wrong, and whole records follow"}
}

// frameSize decodes a record's length and padding.
func frameSize(header []byte) (size, pad int64) {
	n := binary.LittleEndian.Uint64(header)
	size = int64(n &^ (0xff << 56))
	if n>>63 == 1 {
		pad = int64(n >> 56 & 7)
	}
	return size, pad
}

// firstNonZero returns where the first byte is that is not 0, or -1.
func firstNonZero(f *os.File, from int64) (int64, error) {
	buf := make([]byte, 1<<20)
	for {
		n, err := f.ReadAt(buf, from)
		if i := slices.IndexFunc(buf[:n], func(b byte) bool { return b != 0 }); i >= 0 {
			return from + int64(i), nil
		}
		if errors.Is(err, io.EOF) {
			return -1, nil
		}
		if err != nil {
			return 0, fmt.Errorf("read the write-ahead log: %w", err)
		}
		from += int64(n)
	}
}

// recordsFollow reports whether two whole records stand next to each other
// anywhere after from: the checksum of the second proves both.
func recordsFollow(f *os.File, from, size int64) (bool, error) {
	buf := make([]byte, size-from)
	if _, err := f.ReadAt(buf, from); err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("read the write-ahead log: %w", err)
	}
	var first, second walpb.Record
	for at := 0; at+frameHeader < len(buf); at += frameHeader {
		next, ok := recordAt(buf, at, &first)
		if !ok {
			continue
		}
		if _, ok := recordAt(buf, next, &second); !ok {
			continue
		}
		sum := crc.New(first.GetCrc(), crc32.MakeTable(crc32.Castagnoli))
		_, _ = sum.Write(second.GetData())
		if second.GetType() != wal.CrcType && sum.Sum32() == second.GetCrc() {
			return true, nil
		}
	}
	return false, nil
}

// recordAt decodes what may be a record, and returns where it ends.
func recordAt(buf []byte, at int, rec *walpb.Record) (next int, ok bool) {
	if at+frameHeader > len(buf) {
		return 0, false
	}
	size, pad := frameSize(buf[at:])
	begin := at + frameHeader
	if size == 0 || size+pad > int64(len(buf)-begin) || buf[begin] != 0x08 { // the tag of a record's type
		return 0, false
	}
	rec.Reset()
	if proto.Unmarshal(buf[begin:begin+int(size)], rec) != nil {
		return 0, false
	}
	return begin + int(size+pad), true
}
