package mvccdb_test

import (
	"bytes"
	"testing"

	"github.com/etcdkit/etcdkit/internal/mvccdb"
)

// FuzzCheck changes bytes of a real database, as triples of a place and a
// value: whatever comes out, the check ends and does not crash.
func FuzzCheck(f *testing.F) {
	good := kubernetes(f)
	f.Add([]byte{0, 0, 20, 1})
	f.Add([]byte{1, 0x10, 0x0c, 0xff, 0, 0x40, 0x08, 0x01})
	f.Add(bytes.Repeat([]byte{4, 0x30, 0, 0x7f}, 8))
	f.Fuzz(func(t *testing.T, changes []byte) {
		b := bytes.Clone(good)
		for ; len(changes) >= 4; changes = changes[4:] {
			at := int(changes[0])<<16 | int(changes[1])<<8 | int(changes[2])
			b[at%len(b)] = changes[3]
		}
		db, err := mvccdb.Open(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		if _, err := db.Check(t.Context(), mvccdb.CheckOptions{}); err != nil {
			t.Fatal(err)
		}
		_, _ = db.HashKV(t.Context(), 0, mvccdb.Options{})
	})
}

// FuzzPage reads a database of which one page is anything at all.
func FuzzPage(f *testing.F) {
	good := kubernetes(f)
	f.Add(uint8(40), good[40*pageSize:41*pageSize])
	f.Add(uint8(71), good[71*pageSize:72*pageSize])
	f.Fuzz(func(t *testing.T, page uint8, content []byte) {
		b := bytes.Clone(good)
		copy(b[int(page)%75*pageSize:], content)
		for range mvccdb.Salvage(content) {
			continue
		}
		db, err := mvccdb.Open(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		if _, err := db.Check(t.Context(), mvccdb.CheckOptions{}); err != nil {
			t.Fatal(err)
		}
	})
}
