package secrets

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

func record(key, value string) []byte {
	b := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), key)
	for num := protowire.Number(2); num <= 4; num++ {
		b = protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), 7)
	}
	return protowire.AppendString(protowire.AppendTag(b, 5, protowire.BytesType), value)
}

func TestRecordAt(t *testing.T) {
	const key = "/registry/secrets/ns/a"
	long := "/registry/secrets/ns/" + string(bytes.Repeat([]byte("n"), 200))
	for name, tc := range map[string]struct {
		data []byte
		want string // the value found
	}{
		"a record":                   {record(key, "value"), "value"},
		"a long key":                 {record(long, "value"), "value"},
		"after other bytes":          {append([]byte("\x00\xff\x0a"), record(key, "value")...), "value"},
		"a value that is cut off":    {record(key, "value")[:len(record(key, "value"))-2], "val"},
		"a key that is only text":    {[]byte("see " + key + " for more"), ""},
		"a deletion":                 {record(key, "")[:24], ""},
		"a key that is cut off":      {record(key, "value")[:20], ""},
		"fields that make no sense":  {append(record(key, "")[:24], 0xff, 0xff, 0xff), ""},
		"revisions that are nothing": {append(record(key, "")[:24], 0x10, 0, 0x18, 0, 0x20, 0, 0x2a, 1, 'v'), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			for at := range occurrences(tc.data, []byte("/registry/secrets/"), 0, len(tc.data)) {
				if r, ok := recordAt(tc.data, at); ok && r.whole {
					got = string(tc.data[r.value.from:min(r.value.to, len(tc.data))])
				}
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func FuzzFreePages(f *testing.F) {
	f.Add(record("/registry/secrets/ns/a", "value"))
	if data, err := os.ReadFile("testdata/kube/mixed.db"); err == nil {
		f.Add(data[40*4096 : 42*4096])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for at := range occurrences(data, []byte("/registry/"), 0, len(data)) {
			r, ok := recordAt(data, at)
			if ok && (r.key.to > len(data) || r.value.from > len(data) || r.value.to < r.value.from) {
				t.Errorf("record out of bounds: %+v of %d", r, len(data))
			}
			if p, ok := putAt(data, at); ok && (len(p.key.of(data)) == 0 || p.value.to < p.value.from) {
				t.Errorf("a put without a key: %+v", p)
			}
		}
	})
}

func FuzzLog(f *testing.F) {
	put := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "/registry/secrets/ns/a")
	put = protowire.AppendString(protowire.AppendTag(put, 2, protowire.BytesType), "value")
	request := protowire.AppendBytes(protowire.AppendTag(nil, 4, protowire.BytesType), put)
	entry := protowire.AppendBytes(protowire.AppendTag(nil, 4, protowire.BytesType), request)
	rec := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), walEntry)
	rec = protowire.AppendBytes(protowire.AppendTag(rec, 3, protowire.BytesType), entry)
	f.Add(append(binary.LittleEndian.AppendUint64(nil, uint64(len(rec))), rec...))
	f.Fuzz(func(t *testing.T, data []byte) {
		w := &walLog{damage: func(string) {}, dirs: [][]byte{[]byte("/registry/")}, put: func(p walPut) error {
			if len(p.key) == 0 || len(p.value) == 0 && p.complete {
				t.Errorf("a put of nothing: %+v", p)
			}
			return nil
		}}
		file := bytesFile{bytes.NewReader(data)}
		if err := w.segment(file, int64(len(data)), "x.wal"); err != nil {
			t.Error(err)
		}
		if err := w.tail(file, int64(len(data))); err != nil {
			t.Error(err)
		}
	})
}

// bytesFile is a File in memory.
type bytesFile struct{ *bytes.Reader }

func (f bytesFile) Size() (int64, error) { return f.Reader.Size(), nil }
