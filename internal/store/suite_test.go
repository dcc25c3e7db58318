package store_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"
	"time"

	"github.com/etcdkit/etcdkit/internal/store"
)

// backends are the stores that the suite runs against.
func backends(t *testing.T) map[string]store.Store {
	return map[string]store.Store{
		"folder": store.NewFolder(filepath.Join(t.TempDir(), "repo")),
		"s3":     openS3(t, startS3(t), "repo/"),
	}
}

// suite runs a test against every backend.
func suite(t *testing.T, test func(t *testing.T, s store.Store)) {
	t.Helper()
	for name, s := range backends(t) {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

func random(t *testing.T, n int) []byte {
	t.Helper()
	b := make([]byte, n)
	if _, err := rand.Read(b); err != nil {
		t.Fatal(err)
	}
	return b
}

func put(t *testing.T, s store.Store, key string, data []byte) {
	t.Helper()
	if n, err := s.Put(t.Context(), key, bytes.NewReader(data), store.PutOptions{}); err != nil || n != int64(len(data)) {
		t.Fatalf("put %s: %d bytes, %v", key, n, err)
	}
}

func get(s store.Store, ctx context.Context, key string) ([]byte, error) { //nolint:revive // the store is what is read
	body, size, err := s.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(body)
	if err == nil && int64(len(data)) != size {
		err = fmt.Errorf("%d bytes announced, %d came", size, len(data))
	}
	return data, errors.Join(err, body.Close())
}

// wantEmpty fails the test if anything is stored or half stored.
func wantEmpty(t *testing.T, s store.Store) {
	t.Helper()
	objects, err := s.List(t.Context(), "")
	if err != nil || len(objects) != 0 {
		t.Errorf("list: %v, %v; want nothing stored", objects, err)
	}
	uploads, err := s.Uploads(t.Context(), "")
	if err != nil || len(uploads) != 0 {
		t.Errorf("uploads: %v, %v; want nothing left", uploads, err)
	}
}

func TestWhatWasPutComesBack(t *testing.T) {
	suite(t, func(t *testing.T, s store.Store) {
		for name, size := range map[string]int{
			"empty": 0, "one byte": 1, "small": 4096, "a part less one": store.MinPartSize - 1, "a part": store.MinPartSize,
			"a part and one": store.MinPartSize + 1, "several parts": 3*store.MinPartSize + 12345,
		} {
			t.Run(name, func(t *testing.T) {
				want := random(t, size)
				n, err := s.Put(t.Context(), "c/"+name, bytes.NewReader(want), store.PutOptions{PartSize: store.MinPartSize, Metadata: map[string]string{"revision": "7"}})
				if err != nil || n != int64(size) {
					t.Fatalf("put: %d, %v; want %d bytes stored", n, err, size)
				}
				got, err := get(s, t.Context(), "c/"+name)
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("get: %d bytes, %v; want the %d put", len(got), err, size)
				}
			})
		}
	})
}

// minio/minio-go#1353: a source that broke with an unexpected EOF ended as
// a success.
func TestABrokenSourceStoresNothing(t *testing.T) {
	broken := errors.New("etcd went away")
	suite(t, func(t *testing.T, s store.Store) {
		for name, tc := range map[string]struct {
			size int
			end  error
		}{
			"before the first byte":            {0, broken},
			"in a small object":                {100, broken},
			"at the end of a part":             {store.MinPartSize, broken},
			"in the third part":                {2*store.MinPartSize + 5, broken},
			"with an unexpected EOF":           {2*store.MinPartSize + 5, io.ErrUnexpectedEOF},
			"with an unexpected EOF and small": {10, io.ErrUnexpectedEOF},
			"with a wrapped EOF":               {10, fmt.Errorf("stream: %w", io.EOF)},
		} {
			t.Run(name, func(t *testing.T) {
				src := io.MultiReader(bytes.NewReader(make([]byte, tc.size)), iotest.ErrReader(tc.end))
				_, err := s.Put(t.Context(), "c/x", src, store.PutOptions{PartSize: store.MinPartSize})
				if !errors.Is(err, tc.end) {
					t.Errorf("put: %v, want the source's error", err)
				}
				wantEmpty(t, s)
			})
		}
	})
}

func TestACancelledPutStoresNothing(t *testing.T) {
	suite(t, func(t *testing.T, s store.Store) {
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := errors.New("stopped by a signal")
		src := io.MultiReader(bytes.NewReader(make([]byte, 2*store.MinPartSize)), readerFunc(func([]byte) (int, error) {
			cancel(stop)
			return 0, stop
		}))
		if _, err := s.Put(ctx, "c/x", src, store.PutOptions{PartSize: store.MinPartSize}); !errors.Is(err, stop) {
			t.Errorf("put: %v, want the cause of the cancel", err)
		}
		wantEmpty(t, s)
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestListIsInKeyOrderAndByPrefix(t *testing.T) {
	suite(t, func(t *testing.T, s store.Store) {
		for _, key := range []string{"b/2.db", "a/1.db", "b/1.json", "bb/3.db"} {
			put(t, s, key, []byte(key))
		}
		for prefix, want := range map[string][]string{
			"":        {"a/1.db", "b/1.json", "b/2.db", "bb/3.db"},
			"b/":      {"b/1.json", "b/2.db"},
			"b/2":     {"b/2.db"},
			"nothing": nil,
		} {
			objects, err := s.List(t.Context(), prefix)
			var got []string
			for _, o := range objects {
				got = append(got, o.Key)
				if o.Size != int64(len(o.Key)) || time.Since(o.Modified).Abs() > time.Hour {
					t.Errorf("%s: size %d, modified %s", o.Key, o.Size, o.Modified)
				}
			}
			if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("list %q: %v, %v; want %v", prefix, got, err, want)
			}
		}
	})
}

func TestDeleteAndWhatIsMissing(t *testing.T) {
	suite(t, func(t *testing.T, s store.Store) {
		put(t, s, "a/1", []byte("x"))
		for range 2 { // the second time it is gone already, which is no error
			if err := s.Delete(t.Context(), "a/1"); err != nil {
				t.Errorf("delete: %v", err)
			}
		}
		if _, err := get(s, t.Context(), "a/1"); !errors.Is(err, store.ErrNotExist) {
			t.Errorf("get a deleted object: %v, want ErrNotExist", err)
		}
	})
}

func TestCopyBetweenStores(t *testing.T) {
	server := startS3(t)
	s3a, s3b := openS3(t, server, "a/"), openS3(t, server, "b/")
	folder := store.NewFolder(t.TempDir())
	data := random(t, 100_000)
	put(t, s3a, "c/x", data)
	put(t, folder, "c/x", data)
	for name, tc := range map[string]struct {
		from, to   store.Store
		serverSide bool
	}{
		"folder to folder":            {folder, store.NewFolder(t.TempDir()), false},
		"bucket to folder":            {s3a, store.NewFolder(t.TempDir()), false},
		"folder to bucket":            {folder, openS3(t, server, "from-folder/"), false},
		"bucket to bucket, one store": {s3a, s3b, true},
	} {
		t.Run(name, func(t *testing.T) {
			serverSide, err := store.Copy(t.Context(), tc.from, tc.to, "c/x", nil)
			if err != nil || serverSide != tc.serverSide {
				t.Errorf("copy: server side %t, %v; want %t", serverSide, err, tc.serverSide)
			}
			if got, err := get(tc.to, t.Context(), "c/x"); err != nil || !bytes.Equal(got, data) {
				t.Errorf("get the copy: %d bytes, %v", len(got), err)
			}
		})
	}
}

func TestFolderFilesArePrivateWhateverTheUmask(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	put(t, store.NewFolder(dir), "c/x.db", []byte("secret"))
	info, err := os.Stat(filepath.Join(dir, "c", "x.db"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
}

func TestAFailedPutLeavesNoFolderBehind(t *testing.T) {
	root := filepath.Join(t.TempDir(), "repo")
	src := iotest.ErrReader(errors.New("source broke"))
	if _, err := store.NewFolder(root).Put(t.Context(), "cluster/a.db", src, store.PutOptions{}); err == nil {
		t.Fatal("a broken source was stored")
	}
	if entries, err := os.ReadDir(root); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v left in the repository, want nothing", entries, err)
	}
}

func TestFolderListsAndAbortsWhatAKilledRunLeft(t *testing.T) {
	dir := t.TempDir()
	s := store.NewFolder(dir)
	left := filepath.Join(dir, ".x-run.db.zst.0011aabb.part")
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	uploads, err := s.Uploads(t.Context(), "")
	if err != nil || len(uploads) != 1 || uploads[0].Key != "x-run.db.zst" {
		t.Fatalf("uploads: %v, %v", uploads, err)
	}
	if err := s.Abort(t.Context(), uploads[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("stat after abort: %v, want it gone", err)
	}
}

func TestFolderNeverReplacesWhatIsNoRegularFile(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "elsewhere")
	if err := os.Symlink(target, filepath.Join(dir, "x.db")); err != nil {
		t.Skip(err)
	}
	if _, err := store.NewFolder(dir).Put(t.Context(), "x.db", bytes.NewReader([]byte("1")), store.PutOptions{}); err == nil {
		t.Error("put replaced a symbolic link")
	}
}
