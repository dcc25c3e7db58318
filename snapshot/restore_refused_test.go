package snapshot_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	bolt "go.etcd.io/bbolt"

	"github.com/etcdkit/etcdkit/internal/mvccdb"
	"github.com/etcdkit/etcdkit/snapshot"
)

func TestWhatCannotBeRestoredLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	good := kubernetes(t)
	for name, tc := range map[string]struct {
		bytes  func() []byte
		reader func(io.Reader) io.Reader
		opts   func(*snapshot.RestoreOptions)
		want   string
	}{
		"nothing":     {bytes: func() []byte { return nil }, want: "the file is empty"},
		"a text file": {bytes: func() []byte { return []byte("not a database\n") }, want: "it looks like a text file"},
		"a zstd file": {bytes: func() []byte { return append([]byte("\x28\xb5\x2f\xfd"), make([]byte, 600)...) }, want: "zstd"},
		"a lost end":  {bytes: func() []byte { return good[:len(good)-20000] }, want: "no SHA-256 at its end"},
		"no hash (gardener/etcd-backup-restore#749)": {bytes: func() []byte { return good[:len(good)-32] }, want: "no SHA-256 at its end"},
		"a changed bit": {bytes: func() []byte { return flip(good, 100_000) }, want: "it was changed or damaged"},
		"a damaged file without its hash check (etcd-io/etcd#16052)": {
			bytes: func() []byte { return good[:9000] },
			opts:  func(o *snapshot.RestoreOptions) { o.SkipHashCheck = true },
			want:  "the file is truncated: 9000 bytes, and the database needs 307200",
		},
		"a zeroed page without the hash check (etcd-io/bbolt#581)": {
			bytes: func() []byte { return zeroPage(good) },
			opts:  func(o *snapshot.RestoreOptions) { o.SkipHashCheck = true },
			want:  "page 40",
		},
		"a malformed revision key (etcd-io/etcd PR #21879)": {
			bytes: func() []byte { return withKey(t, good, []byte{1, 2, 3, 4, 5}) },
			opts:  func(o *snapshot.RestoreOptions) { o.SkipHashCheck = true },
			want:  "revision key 0102030405 has 5 bytes",
		},
		"a source that breaks off": {
			bytes: func() []byte { return good },
			reader: func(r io.Reader) io.Reader {
				return io.MultiReader(io.LimitReader(r, 50_000), iotest.ErrReader(errBroken))
			},
			want: errBroken.Error(),
		},
		"a name that is not in the cluster": {
			bytes: func() []byte { return good },
			opts:  func(o *snapshot.RestoreOptions) { o.Name = "m9" },
			want:  `couldn't find local name "m9"`,
		},
		"whoever knows better refuses": {
			bytes: func() []byte { return good },
			opts:  func(o *snapshot.RestoreOptions) { o.Accept = func(snapshot.Copied) error { return errBroken } },
			want:  errBroken.Error(),
		},
		"a bump past the last revision": {
			bytes: func() []byte { return good },
			opts:  func(o *snapshot.RestoreOptions) { o.Bump = snapshot.Bump{By: 1<<63 - 200, Compacted: true} },
			want:  "past the largest revision",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "d")
			opts := single(dir)
			if tc.opts != nil {
				tc.opts(&opts)
			}
			sources := []snapshot.RestoreSource{sourceOf(tc.bytes())}
			if tc.reader != nil {
				sources[0].Reader = tc.reader(sources[0].Reader)
			} else {
				sources = append(sources, fileSource(t, tc.bytes())) // which is checked while it is copied
			}
			for _, src := range sources {
				_, err := snapshot.Restore(t.Context(), src, opts)
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("restore of %T: %v, want %q", src.Reader, err, tc.want)
				}
				if _, err := os.Stat(dir); !os.IsNotExist(err) {
					t.Errorf("stat of the target: %v, want nothing left", err)
				}
			}
		})
	}
}

var errBroken = errors.New("the connection broke") // a test's sentinel

func flip(b []byte, at int) []byte {
	b = bytes.Clone(b)
	b[at] ^= 1
	return b
}

// zeroPage clears page 40, a leaf of the keys.
func zeroPage(b []byte) []byte {
	b = bytes.Clone(b)
	clear(b[40*4096 : 41*4096])
	return b
}

// withKey adds a raw key to the key bucket, as only bbolt itself can.
func withKey(t *testing.T, b, key []byte) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(path, b[:len(b)-32], 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error { return tx.Bucket([]byte(mvccdb.KeyBucket)).Put(key, []byte{1}) })
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	b, err = os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
