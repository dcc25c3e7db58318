//go:build unix

package snapshot_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/store"
	"github.com/etcdkit/etcdkit/snapshot"
)

// etcd-io/etcd#9976: what holds data is for its owner alone, whatever the
// umask.
func TestDataFilesArePrivateWhateverTheUmask(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	c := cluster(t, 1, 3)
	dir := t.TempDir()
	repo := store.NewFolder(filepath.Join(dir, "repo"))
	opts := snapshot.SaveOptions{Runs: snapshot.Runs{Dir: filepath.Join(dir, "runs")}, Stage: dir}
	staged := 0
	opts.Progress = func(int64, int64) {
		files, _ := os.ReadDir(dir)
		for _, f := range files {
			if info, err := f.Info(); err == nil && info.Mode().IsRegular() {
				staged++
				if info.Mode().Perm() != 0o600 {
					t.Errorf("while it is staged, %s has mode %v", f.Name(), info.Mode())
				}
			}
		}
	}
	if _, err := snapshot.Save(t.Context(), source(c.Endpoints()...), repo, opts); err != nil {
		t.Fatal(err)
	}
	if _, err := snapshot.Verify(t.Context(), repo, only(t, repo), snapshot.VerifyOptions{Now: time.Now}); err != nil {
		t.Fatal(err)
	}
	if _, err := snapshot.SaveFile(t.Context(), source(c.Endpoints()...), filepath.Join(dir, "x.db"), snapshot.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	restoreTo(t, kubernetes(t), single(filepath.Join(dir, "restored")))
	files := 0
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().IsRegular() {
			files++
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
		return nil
	})
	if err != nil || files != 8 {
		t.Errorf("%d files, %v; want data, manifest and record, a file with its manifest, and the three of a member", files, err)
	}
}
