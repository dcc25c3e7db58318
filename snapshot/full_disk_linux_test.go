package snapshot_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/store"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
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
	client := etcdtest.Client(t, c.Endpoints()...)
	for i := range 200 { // what does not compress
		value := make([]byte, 1000)
		_, _ = rand.Read(value)
		if _, err := client.Put(t.Context(), fmt.Sprintf("/random/%d", i), string(value)); err != nil {
			t.Fatal(err)
		}
	}
	elsewhere := store.NewFolder(t.TempDir())
	if _, err := snapshot.Save(t.Context(), source(c.Endpoints()...), elsewhere, snapshot.SaveOptions{Codec: snapshot.Codec{Compression: "zstd"}}); err != nil {
		t.Fatal(err)
	}
	verify := func(level snapshot.Level) error {
		_, err := snapshot.Verify(t.Context(), elsewhere, only(t, elsewhere), snapshot.VerifyOptions{Level: level, Scratch: disk, Now: time.Now})
		return err
	}
	for name, save := range map[string]func() error{
		"of the stage": func() error {
			_, err := snapshot.Save(t.Context(), source(c.Endpoints()...), store.NewFolder(t.TempDir()), snapshot.SaveOptions{Stage: disk})
			return err
		},
		"of the stage, how much it needs not known": func() error {
			opts := snapshot.SaveOptions{Stage: disk, Codec: snapshot.Codec{Compression: "zstd"}}
			_, err := snapshot.Save(t.Context(), source(c.Endpoints()...), store.NewFolder(t.TempDir()), opts)
			return err
		},
		"of the scratch folder": func() error { return verify("") },
		"of that of a drill":    func() error { return verify(snapshot.LevelRestored) },
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
			if err := save(); !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, snapshot.ErrNoSpace) || hint.Of(err) == "" {
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
