package mvccdb_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/etcdkit/etcdkit/internal/mvccdb"
)

// places returns where the values of the key bucket's records begin, and their
// lengths.
func places(t *testing.T, b []byte) (at, size []int) {
	t.Helper()
	db, err := mvccdb.Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	err = mvccdb.Scan(t.Context(), db, mvccdb.Options{Buckets: []string{mvccdb.KeyBucket}, Workers: 1}, func(batch *mvccdb.Batch) (int, error) {
		for _, e := range batch.Elements {
			key := int(e.Offset) + int(binary.LittleEndian.Uint32(b[e.Offset+4:]))
			at, size = append(at, key+len(e.RawKey)), append(size, len(e.RawValue))
		}
		return 0, nil
	}, func(int) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return at, size
}

// Tags and lengths decide what etcd makes of a record: a changed bit can turn
// its key into a field that etcd ignores.
func TestEveryBitFlipInTheFieldsOfARecordIsFound(t *testing.T) {
	good := kubernetes(t)
	at, size := places(t, good)
	r := rand.New(rand.NewPCG(3, 3))
	for range recordFlips {
		i := r.IntN(len(at))
		fields := fieldBytes(good[at[i]:][:size[i]])
		if len(fields) == 0 {
			continue
		}
		bad := bytes.Clone(good)
		bad[at[i]+fields[r.IntN(len(fields))]] ^= 1 << r.IntN(8)
		if !found(t, sealed(bad)) {
			n := min(40, size[i])
			t.Errorf("record %d: %x became %x, and nothing is found", i, good[at[i]:][:n], bad[at[i]:][:n])
		}
	}
}

// fieldBytes returns the places of tags and lengths in a record.
func fieldBytes(value []byte) (places []int) {
	for at := 0; at < len(value); {
		num, typ, n := protowire.ConsumeTag(value[at:])
		for i := range n {
			places = append(places, at+i)
		}
		at += n
		m := protowire.ConsumeFieldValue(num, typ, value[at:])
		if typ == protowire.BytesType {
			_, length := protowire.ConsumeVarint(value[at:])
			for i := range length {
				places = append(places, at+i)
			}
		}
		at += m
	}
	return places
}

func TestARecordWithoutAKeyIsNamedWithItsPlace(t *testing.T) {
	good := kubernetes(t)
	at, size := places(t, good)
	bad, want := bytes.Clone(good), 0
	for i := range at {
		if size[i] > 0 && i%5 == 0 {
			bad[at[i]] ^= 0x40 // the tag of field 1 becomes that of field 9
			want++
		}
	}
	r, err := checkBytes(t, sealed(bad))
	if err != nil {
		t.Fatal(err)
	}
	if r.DamageCount != want {
		t.Errorf("%d faults, want the %d records without a key and nothing else", r.DamageCount, want)
	}
	for _, d := range r.Damage {
		if d.Page == mvccdb.NoPage || !strings.Contains(d.What, "the record has no key") {
			t.Fatalf("got %v, want a page and that the record has no key", d)
		}
	}
}

// A key's name is checked by nothing but its other versions: with a changed
// name, the next version of the key does not follow, and the changed one is a
// later version of a key that never existed.
func TestAChangedNameOfAKeyIsFoundByItsOtherVersions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	s := openStore(t, path)
	for range 3 {
		for _, key := range []string{"/a/one", "/a/two", "/a/three"} {
			s.Put([]byte(key), bytes.Repeat([]byte("value"), 99), 0) // too large for an inline bucket
		}
	}
	s.DeleteRange([]byte("/a/two"), nil)
	s.close()
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := checkBytes(t, good); err != nil || !r.Good() {
		t.Fatalf("the good file: %v, %v", r.Damage, err)
	}
	at, size := places(t, good)
	for i := range at {
		name := bytes.Index(good[at[i]:][:size[i]], []byte("/a/"))
		bad := bytes.Clone(good)
		bad[at[i]+name+3] ^= 0x08
		if r, err := checkBytes(t, bad); err != nil || r.Good() {
			t.Errorf("record %d, %q: nothing is found", i, bad[at[i]:][:size[i]])
		}
	}
}

// edit changes a copy of a good database by bbolt itself, so that its structure
// stays whole.
func edit(t *testing.T, change func(tx *bolt.Tx) error) []byte {
	t.Helper()
	good := kubernetes(t)
	path := filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(path, good[:len(good)-32], 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(change), db.Close()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestWhatEtcdTrustsAfterARestoreIsChecked(t *testing.T) {
	put := func(bucket, key, value string) func(*bolt.Tx) error {
		return func(tx *bolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte(bucket))
			if err != nil {
				return err
			}
			return b.Put([]byte(key), []byte(value))
		}
	}
	rename := func(from, to string) func(*bolt.Tx) error {
		return func(tx *bolt.Tx) error {
			if err := tx.DeleteBucket([]byte(from)); err != nil {
				return err
			}
			_, err := tx.CreateBucket([]byte(to))
			return err
		}
	}
	for name, tc := range map[string]struct {
		change func(*bolt.Tx) error
		want   string // "" where nothing is wrong
	}{
		"a name that a later etcd adds":      {put("meta", "somethingNew", "x"), ""},
		"a bucket that a later etcd adds":    {put("somethingNew", "a", "x"), ""},
		"a damaged name in meta":             {put("meta", "consistent_indey", "12345678"), `must be "consistent_index"`},
		"a damaged bucket name":              {rename("authUsers", "authUserr"), `must be "authUsers"`},
		"authentication neither on nor off":  {put("auth", "authEnabled", "\x03"), "want 00 or 01"},
		"a damaged name in auth":             {put("auth", "authEnabldd", "\x01"), `must be "authEnabled"`},
		"a user under another name":          {put("authUsers", "root", "\x0a\x04rooz"), "has another name"},
		"a user with a field of no meaning":  {put("authUsers", "root", "\x0a\x04root\x4a\x01x"), "never writes"},
		"a role under another name":          {put("authRoles", "r", "\x0a\x01s"), "has another name"},
		"a lease under another id":           {put("lease", "\x00\x00\x00\x00\x00\x00\x00\x07", "\x08\x06\x10\x3c"), "has the id 6"},
		"a lease with a field of no meaning": {put("lease", "\x00\x00\x00\x00\x00\x00\x00\x07", "\x08\x07\x10\x3c\x48\x01"), "never writes"},
		"a good lease":                       {put("lease", "\x00\x00\x00\x00\x00\x00\x00\x07", "\x08\x07\x10\x3c"), ""},
		"a cluster version that is none":     {put("cluster", "clusterVersion", "3.x.0"), "not a version"},
		"a storage version that is none":     {put("meta", "storageVersion", "3;6.0"), "not a version"},
		"no voter":                           {put("meta", "confState", `{"voterr":[1]}`), "no voter"},
		"a member under another id":          {put("members", "8e9e05c52164694d", `{"id":1,"peerURLs":["http://a:2380"]}`), "has the id 1"},
		"an alarm of no type":                {put("alarm", "\x08\x01\x10\x09", ""), "is unknown"},
		"a compaction that never began":      {put("meta", "finishedCompactRev", "\x40\x00\x00\x00\x00\x00\x00\x05_\x00\x00\x00\x00\x00\x00\x00\x00"), "the last one begun was"},
		"a compaction of no revision":        {put("meta", "finishedCompactRev", "\x00\x00\x00\x00\x00\x00\x00\x05_\x00\x00\x00\x00\x00\x00\x00\x01"), "not the revision of a compaction"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := checkBytes(t, edit(t, tc.change))
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			for _, d := range r.Damage {
				text += d.Error() + "\n"
			}
			if (tc.want == "") != (r.DamageCount == 0) || !strings.Contains(text, tc.want) {
				t.Errorf("found %q, want %q", text, tc.want)
			}
		})
	}
}

// bbolt writes over every page that its list of free pages names.
func TestAListOfFreePagesThatNamesAPageInUseIsFound(t *testing.T) {
	good := edit(t, func(*bolt.Tx) error { return nil })
	db, err := mvccdb.Open(bytes.NewReader(good), int64(len(good)))
	if err != nil {
		t.Fatal(err)
	}
	report, err := db.Check(t.Context(), mvccdb.CheckOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		list []uint64
		want string
	}{
		"a page in use":        {[]uint64{0}, "which is in use"},
		"a page past the end":  {[]uint64{1 << 40}, "names page 1099511627776 of"},
		"the first meta page":  {[]uint64{1}, "names page 1 of"},
		"one page twice":       {nil, "twice"},
		"free pages, each one": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			patches, err := db.Freelist(report.Free)
			if err != nil || len(patches) == 0 {
				t.Fatalf("%d patches, %v", len(patches), err)
			}
			b := bytes.Clone(good)
			for _, p := range patches {
				b = append(b, make([]byte, max(0, int(p.Offset)+len(p.Bytes)-len(b)))...)
				copy(b[p.Offset:], p.Bytes)
			}
			at := int(patches[0].Offset)
			list := tc.list
			free := binary.LittleEndian.Uint64(b[at+16:])
			switch {
			case name == "one page twice":
				list = []uint64{free, free}
			case len(list) > 0 && list[0] == 0:
				list = []uint64{binary.LittleEndian.Uint64(b[16+16:])} // the root of the first meta page
				if second := b[pageSize:]; binary.LittleEndian.Uint64(second[16+48:]) > binary.LittleEndian.Uint64(b[16+48:]) {
					list = []uint64{binary.LittleEndian.Uint64(second[16+16:])}
				}
			}
			if list != nil {
				binary.LittleEndian.PutUint16(b[at+10:], uint16(len(list)))
				for i, id := range list {
					binary.LittleEndian.PutUint64(b[at+16+8*i:], id)
				}
			}
			r, err := checkBytes(t, b)
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			for _, d := range r.Damage {
				text += d.Error()
			}
			if (tc.want == "") != (r.DamageCount == 0) || !strings.Contains(text, tc.want) {
				t.Errorf("found %q, want %q", text, tc.want)
			}
		})
	}
}
