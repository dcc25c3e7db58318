package store_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcdkit/etcdkit/internal/dirfd"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/store"
)

// Data behind a link is read, and never changed: neither behind a link to a
// folder nor behind one to a file.
func TestNothingBehindALinkIsChanged(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	precious := filepath.Join(outside, "a.db")
	err := errors.Join(os.WriteFile(precious, []byte("data"), 0o600), os.Symlink(outside, filepath.Join(root, "cluster")),
		os.Symlink(precious, filepath.Join(root, "b.db")), os.WriteFile(filepath.Join(root, "c.db"), nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	folder := store.NewFolder(root)
	put := func(key string) error {
		_, err := folder.Put(t.Context(), key, strings.NewReader("new"), store.PutOptions{})
		return err
	}
	for name, change := range map[string]func() error{
		"put behind a folder":    func() error { return put("cluster/new.db") },
		"put over a file":        func() error { return put("cluster/a.db") },
		"delete behind a folder": func() error { return folder.Delete(t.Context(), "cluster/a.db") },
		"delete a file":          func() error { return folder.Delete(t.Context(), "b.db") },
		"abort behind a folder":  func() error { return folder.Abort(t.Context(), store.Upload{Key: "cluster/a.db", ID: "x"}) },
		"rename to a folder":     func() error { return folder.Rename("c.db", "cluster/a.db") },
		"rename from a folder":   func() error { return folder.Rename("cluster/a.db", "d.db") },
	} {
		t.Run(name, func(t *testing.T) {
			if err := change(); !errors.Is(err, dirfd.ErrLink) || hint.Of(err) == "" {
				t.Errorf("got %v, hint %q; want the link named", err, hint.Of(err))
			}
		})
	}
	if err := put("b.db"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("put over a link: %v, want a refusal", err)
	}
	if content, err := os.ReadFile(precious); err != nil || string(content) != "data" {
		t.Errorf("behind the links: %q, %v", content, err)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("behind the link there is %v, %v", entries, err)
	}
	if _, size, err := folder.Get(t.Context(), "cluster/a.db"); err != nil || size != 4 {
		t.Errorf("read behind a link: %d, %v", size, err)
	}
}
