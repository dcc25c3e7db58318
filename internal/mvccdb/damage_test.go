package mvccdb_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/etcdkit/etcdkit/internal/mvccdb"
)

const pageSize = 4096

// kubernetes returns a real snapshot.
func kubernetes(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "snapshot", "testdata", "kubernetes.db"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sealed puts the SHA-256 of a changed database at its end.
func sealed(b []byte) []byte {
	sum := sha256.Sum256(b[:len(b)-sha256.Size])
	return append(b[:len(b)-sha256.Size], sum[:]...)
}

func checkBytes(t testing.TB, b []byte) (*mvccdb.Report, error) {
	t.Helper()
	db, err := mvccdb.Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, err
	}
	r, err := db.Check(t.Context(), mvccdb.CheckOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r, nil
}

// found reports whether damage was found.
func found(t testing.TB, b []byte) bool {
	t.Helper()
	r, err := checkBytes(t, b)
	return err != nil || !r.Good()
}

func TestATruncatedFileIsDamagedAtAnyLength(t *testing.T) {
	t.Parallel()
	good := kubernetes(t)
	for size := 0; size < len(good)-sha256.Size; size += 1531 {
		for _, n := range []int{size, size / 512 * 512, size/512*512 + sha256.Size} {
			if n < len(good)-sha256.Size && !found(t, good[:n]) {
				t.Errorf("%d bytes of %d: the damage is not found", n, len(good))
			}
		}
	}
	if r, err := checkBytes(t, good[:len(good)-sha256.Size]); err != nil || !r.Good() || r.Trailer != mvccdb.TrailerNone {
		t.Errorf("without its SHA-256: %+v, %v; want a good database without a trailer", r, err)
	}
}

func TestWhatIsNoDatabaseIsNamed(t *testing.T) {
	t.Parallel()
	good := kubernetes(t)
	for name, tc := range map[string]struct {
		bytes []byte
		want  string
	}{
		"nothing":      {nil, "the file is empty"},
		"text":         {[]byte("The quick brown fox.\n"), "a text file"},
		"long text":    {bytes.Repeat([]byte("grün\n"), 4000), "a text file"},
		"a zip":        {append([]byte("PK\x03\x04"), good...), "a zip archive"},
		"gzip":         {append([]byte("\x1f\x8b\x08"), good...), "a gzip file"},
		"zstd":         {append([]byte("\x28\xb5\x2f\xfd"), good...), "a zstd file"},
		"age":          {append([]byte("age-encryption.org/v1\n"), good...), "an age file"},
		"a tar":        {append(append(make([]byte, 257), "ustar\x00"...), good...), "a tar archive"},
		"a big endian": {bigEndian(good), "a big-endian machine"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := checkBytes(t, tc.bytes)
			if !errors.Is(err, mvccdb.ErrNotDatabase) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("open: %v, want %q", err, tc.want)
			}
		})
	}
}

func bigEndian(b []byte) []byte {
	b = bytes.Clone(b)
	binary.BigEndian.PutUint32(b[16:], 0xED0CDAED)
	return b
}

// withMeta changes both meta pages, with a right checksum.
func withMeta(b []byte, offset int, value uint64) []byte {
	b = bytes.Clone(b)
	for _, at := range []int{16, pageSize + 16} {
		binary.LittleEndian.PutUint64(b[at+offset:], value)
		h := fnv.New64a()
		h.Write(b[at : at+56])
		binary.LittleEndian.PutUint64(b[at+56:], h.Sum64())
	}
	return sealed(b)
}

// patch changes bytes and makes the SHA-256 fit again.
func patch(b []byte, at int, with ...byte) []byte {
	b = bytes.Clone(b)
	copy(b[at:], with)
	return sealed(b)
}

func TestDamageIsNamedWithItsPlace(t *testing.T) {
	t.Parallel()
	good := kubernetes(t)
	root := int(binary.LittleEndian.Uint64(good[16+16:]))
	leaf, branch := pagesOf(good)
	for name, tc := range map[string]struct {
		bytes []byte
		want  string
	}{
		"a broken first meta page":    {patch(good, 20, 0xff), "meta page 0 has format version"},
		"a broken second meta page":   {patch(good, pageSize+72, 1, 2, 3), "meta page 1 has a wrong checksum"},
		"two broken meta pages":       {patch(patch(good, 72, 1, 2, 3), pageSize+72, 1, 2, 3), "meta page 0 has a wrong checksum, and meta page 1 has a wrong checksum"},
		"a root past the end":         {withMeta(good, 16, 1<<40), "has its root at page"},
		"more pages than the file":    {withMeta(good, 40, 1<<50), "the file is truncated"},
		"a page with a wrong number":  {patch(good, leaf*pageSize, 0xee), "carries the page number"},
		"a page of no type":           {patch(good, leaf*pageSize+8, 0x20), "page type 0x20"},
		"too many elements":           {patch(good, leaf*pageSize+10, 0xff, 0xff), "elements do not fit"},
		"an overflow past the end":    {patch(good, leaf*pageSize+12, 0xff, 0xff, 0xff, 0x7f), "reach past the end"},
		"an element outside its page": {patch(good, leaf*pageSize+16+8, 0xff, 0xff, 0xff, 0x7f), "reaches out of its page"},
		"a key that is too long":      {patch(good, leaf*pageSize+16+4, 0xff, 0xff), "points to byte"},
		"a cycle":                     {patch(good, branch*pageSize+16+8, byte(branch), 0), "a cycle, or a page with two owners"},
		"a tree that leads to a meta": {patch(good, branch*pageSize+16+8, 0, 0), "points to meta page 0"},
		"a tree past the end":         {patch(good, branch*pageSize+16+8, 0xff, 0xff), "past the last one in use"},
		"a zeroed page":               {patch(good, leaf*pageSize, make([]byte, pageSize)...), "carries the page number 0"},
		"a malformed revision key":    {patch(good, revisionKey(good, leaf)+8, 'x'), "has no '_' in the middle"},
		"an undecodable value":        {patch(good, revisionKey(good, leaf)+17, 0xff, 0xff, 0xff, 0xff), "cannot be decoded"},
		"a bucket that is none":       {patch(good, root*pageSize+16, 0), "which is no bucket"},
		"another bucket's name":       {patch(good, bucketName(good, "key"), 'k', 'e', 'w'), `there is no bucket "key"`},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := checkBytes(t, tc.bytes)
			text := ""
			switch {
			case err != nil:
				text = err.Error()
			default:
				for _, d := range r.Damage {
					text += d.Error() + "\n"
					if !errors.Is(d, mvccdb.ErrDamaged) {
						t.Errorf("%v is no damage", d)
					}
				}
			}
			if !strings.Contains(text, tc.want) {
				t.Errorf("found %q, want %q", text, tc.want)
			}
		})
	}
}

// pagesOf returns the branch page at the top of the keys, and a leaf below.
func pagesOf(b []byte) (leaf, branch int) {
	branch = int(binary.LittleEndian.Uint64(b[bucketName(b, mvccdb.KeyBucket)+len(mvccdb.KeyBucket):]))
	return int(binary.LittleEndian.Uint64(b[branch*pageSize+16+3*16+8:])), branch
}

// revisionKey returns where the second key of a leaf page is.
func revisionKey(b []byte, leaf int) int {
	e := leaf*pageSize + 16 + 16
	return e + int(binary.LittleEndian.Uint32(b[e+4:]))
}

func bucketName(b []byte, name string) int {
	root := int(binary.LittleEndian.Uint64(b[16+16:])) * pageSize
	for i := range int(binary.LittleEndian.Uint16(b[root+10:])) {
		e := root + 16 + 16*i
		at, size := e+int(binary.LittleEndian.Uint32(b[e+4:])), int(binary.LittleEndian.Uint32(b[e+8:]))
		if string(b[at:at+size]) == name {
			return at
		}
	}
	return 0
}

func TestABoltDatabaseThatIsNotEtcds(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "db")
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		b, err := tx.CreateBucket([]byte("others"))
		if err != nil {
			return err
		}
		return b.Put([]byte("a"), []byte("b"))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if r := check(t, path); r.Good() || !strings.Contains(r.Damage[0].Error(), "not etcd's") {
		t.Errorf("damage %v, want that it is not etcd's", r.Damage)
	}
}
