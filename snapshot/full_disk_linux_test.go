package snapshot_test

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/store"
	"github.com/etcdkit/etcdkit/snapshot"
)

// fullDisk mounts a small file system, which only root can.
func fullDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("mount a small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestAFullDiskIsTold(t *testing.T) {
	c := cluster(t, 1, 500)
	disk := fullDisk(t)
	for name, save := range map[string]func() error{
		"of the stage": func() error {
			_, err := snapshot.Save(t.Context(), source(c.Endpoints()...), store.NewFolder(t.TempDir()), snapshot.SaveOptions{Stage: disk})
			return err
		},
		"of the file": func() error {
			_, err := snapshot.SaveFile(t.Context(), source(c.Endpoints()...), disk+"/x.db", snapshot.SaveOptions{})
			return err
		},
		"of the repository": func() error {
			_, err := snapshot.Save(t.Context(), source(c.Endpoints()...), store.NewFolder(disk), snapshot.SaveOptions{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := save(); !errors.Is(err, syscall.ENOSPC) || hint.Of(err) == "" {
				t.Errorf("got %v, hint %q; want no space, and what to do", err, hint.Of(err))
			}
			files, err := os.ReadDir(disk)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				if !f.IsDir() {
					t.Errorf("left: %s", f.Name())
				}
			}
		})
	}
}
