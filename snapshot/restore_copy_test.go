package snapshot_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/mvccdb"
	"github.com/etcdkit/etcdkit/snapshot"
)

// fileSource is a snapshot in a file.
func fileSource(t testing.TB, b []byte) snapshot.RestoreSource {
	t.Helper()
	path := filepath.Join(t.TempDir(), "backup.db")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return snapshot.RestoreSource{Name: "backup.db", Reader: f, At: f, Size: int64(len(b))}
}

func TestTheHashesOfASnapshotAreTold(t *testing.T) {
	t.Parallel()
	b := kubernetes(t)
	for _, piece := range []int{1, 31, 32, 33, 5000, len(b)} {
		src := sourceOf(b)
		src.Reader = pieces{bytes.NewReader(b), piece}
		r, err := snapshot.Restore(t.Context(), src, single(filepath.Join(t.TempDir(), "d")))
		if err != nil {
			t.Fatal(err)
		}
		if r.FileSHA256 != sha256.Sum256(b) || r.DatabaseSHA256 != sha256.Sum256(b[:len(b)-32]) || r.FileSize != int64(len(b)) {
			t.Errorf("read in pieces of %d: %d bytes, file %x, database %x", piece, r.FileSize, r.FileSHA256, r.DatabaseSHA256)
		}
	}
}

// pieces is a reader that gives a few bytes at a time.
type pieces struct {
	io.Reader
	n int
}

func (p pieces) Read(b []byte) (int, error) { return p.Reader.Read(b[:min(len(b), p.n)]) }

// However the bytes come, the database is the same, and etcd's: without a
// SHA-256 at its end and without a list of free pages.
func TestAFileAStreamAndAPipeAreRestoredAlike(t *testing.T) {
	t.Parallel()
	b := kubernetes(t)
	pipe, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = to.Write(b) // a reader that ends early is seen below
		_ = to.Close()
	}()
	defer pipe.Close()
	var databases [][]byte
	for _, src := range []snapshot.RestoreSource{fileSource(t, b), sourceOf(b), {Name: "pipe", Reader: pipe}} {
		dir := filepath.Join(t.TempDir(), "d")
		r, err := snapshot.Restore(t.Context(), src, single(dir))
		if err != nil {
			t.Fatal(err)
		}
		if r.FileSHA256 != sha256.Sum256(b) {
			t.Errorf("%T: SHA-256 %x", src.Reader, r.FileSHA256)
		}
		db, err := os.ReadFile(snapshot.Database(dir))
		if err != nil {
			t.Fatal(err)
		}
		databases = append(databases, db)
		if report := checked(t, db); len(db) != len(b)-sha256.Size || report.DamageCount > 0 || report.Revision != r.Revision {
			t.Errorf("%T: %d bytes, revision %d, damage %v", src.Reader, len(db), report.Revision, report.Damage)
		}
	}
	if !bytes.Equal(databases[0], databases[1]) || !bytes.Equal(databases[0], databases[2]) {
		t.Error("the databases differ")
	}
}

func checked(t testing.TB, b []byte) *mvccdb.Report {
	t.Helper()
	db, err := mvccdb.Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	r, err := db.Check(t.Context(), mvccdb.CheckOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What is checked and what is copied are read apart: they must be the same.
func TestAFileThatChangesWhileItIsReadIsNotRestored(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "d")
	src, opts := fileSource(t, kubernetes(t)), single(dir)
	opts.Progress = func(int64, int64) {
		if err := os.Chtimes(src.Reader.(*os.File).Name(), time.Time{}, time.Unix(1, 0)); err != nil {
			t.Error(err)
		}
	}
	if _, err := snapshot.Restore(t.Context(), src, opts); !errors.Is(err, snapshot.ErrChanged) {
		t.Errorf("got %v, want ErrChanged", err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("stat of the target: %v, want nothing left", err)
	}
}

// FuzzRestore restores databases that were changed, without their hash check:
// what gets through the check of the structure must not trip what comes after.
func FuzzRestore(f *testing.F) {
	good, err := os.ReadFile(filepath.Join("testdata", "kubernetes.db"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{0, 0, 20, 1})
	f.Add([]byte{1, 0x10, 0x0c, 0xff, 0, 0x40, 0x08, 0x01})
	f.Fuzz(func(t *testing.T, changes []byte) {
		b := bytes.Clone(good[:len(good)-sha256.Size])
		for ; len(changes) >= 4; changes = changes[4:] {
			at := int(changes[0])<<16 | int(changes[1])<<8 | int(changes[2])
			b[at%len(b)] = changes[3]
		}
		dir := filepath.Join(t.TempDir(), "d")
		opts := single(dir)
		opts.SkipHashCheck = true
		if _, err := snapshot.Restore(t.Context(), sourceOf(b), opts); err != nil {
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				t.Errorf("stat of the target: %v, want nothing left", err)
			}
			return
		}
		db, err := os.ReadFile(snapshot.Database(dir))
		if err != nil {
			t.Fatal(err)
		}
		if report := checked(t, db); report.DamageCount > 0 {
			t.Errorf("damage in what was restored: %v", report.Damage)
		}
	})
}
