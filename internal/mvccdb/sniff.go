package mvccdb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// sniffSize is how much of a file is looked at to say what it is instead of a
// database.
const sniffSize = 512

// notDatabase names what a file is that does not begin like a database. It
// returns nil where the file may be a database with a broken beginning.
func (db *DB) notDatabase() error {
	if db.file == 0 {
		return fmt.Errorf("%w: the file is empty", ErrNotDatabase)
	}
	head := make([]byte, sniffSize)
	n, err := db.r.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the beginning of the file: %w", err)
	}
	head = head[:n]
	if kind := packedAs(head); kind != "" {
		return fmt.Errorf("%w: it looks like %s", packedError{}, kind)
	}
	if kind := sniff(head); kind != "" {
		return fmt.Errorf("%w: it looks like %s", ErrNotDatabase, kind)
	}
	return nil
}

// ErrPacked tells of a file that is no database and may hold one, compressed or
// encrypted. It is an ErrNotDatabase, too.
var ErrPacked = errors.New("compressed or encrypted")

// packedError is what matches both.
type packedError struct{}

func (packedError) Error() string        { return ErrNotDatabase.Error() }
func (packedError) Is(target error) bool { return target == ErrNotDatabase || target == ErrPacked }

func packedAs(head []byte) string {
	for _, f := range []struct{ mark, name string }{
		{"PK\x03\x04", "a zip archive, unpack it first"},
		{"\x1f\x8b", "a gzip file, decompress it first"},
		{"\x28\xb5\x2f\xfd", "a zstd file, decompress it first"},
		{"\xfd7zXZ\x00", "an xz file, decompress it first"},
		{"BZh", "a bzip2 file, decompress it first"},
		{"age-encryption.org/", "an age file, decrypt it first"},
		{"-----BEGIN AGE ENCRYPTED FILE-----", "an age file, decrypt it first"},
	} {
		if bytes.HasPrefix(head, []byte(f.mark)) {
			return f.name
		}
	}
	return ""
}

func sniff(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("SQLite format 3\x00")):
		return "an SQLite database"
	case len(head) > 262 && string(head[257:262]) == "ustar":
		return "a tar archive, unpack it first"
	case len(head) >= metaEnd && binary.BigEndian.Uint32(head[pageHeaderSize:]) == metaMagic:
		return "a database of a big-endian machine, read it on one"
	case isText(head):
		return "a text file"
	}
	return ""
}

// isText reports whether b reads as text: valid UTF-8 but for a character cut
// off at the end, without control characters.
func isText(b []byte) bool {
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		switch {
		case r == utf8.RuneError && size == 1 && len(b)-i >= utf8.UTFMax:
			return false
		case r < ' ' && r != '\n' && r != '\r' && r != '\t' && r != '\f':
			return false
		}
		i += size
	}
	return len(b) > 0
}
