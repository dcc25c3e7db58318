//go:build full

package disk_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/disk"
	"github.com/etcdkit/etcdkit/internal/hint"
)

// mounted returns a folder on a new filesystem of its own, on a loop device.
func mounted(t *testing.T, megabytes int64, mkfs string, options ...string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED, only root can mount a filesystem to measure")
	}
	if _, err := exec.LookPath("mkfs." + mkfs); err != nil {
		t.Skipf("SKIPPED, there is no mkfs.%s", mkfs)
	}
	image, dir := filepath.Join(t.TempDir(), "image"), t.TempDir()
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, megabytes<<20); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs."+mkfs, append([]string{"-q"}, append(options, image)...)...).CombinedOutput(); err != nil {
		t.Fatalf("mkfs.%s: %v\n%s", mkfs, err, out)
	}
	if out, err := exec.Command("mount", "-o", "loop", image, dir).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED, no loop device can be mounted here: %s", out)
	}
	t.Cleanup(func() {
		// Lazily, for an etcd that has failed in this process may keep files open
		// until the process ends.
		if out, err := exec.Command("umount", "--lazy", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v\n%s", err, out)
		}
	})
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	return data
}

func TestEveryFilesystemIsMeasured(t *testing.T) {
	for _, kind := range []string{"ext4", "xfs", "btrfs"} {
		t.Run(kind, func(t *testing.T) {
			dir := mounted(t, 600, kind)
			for _, pattern := range []disk.Pattern{disk.Fio, disk.WAL, disk.Etcd} {
				opts := quick(dir)
				opts.Pattern, opts.Rounds = pattern, 1
				report, err := disk.Check(t.Context(), opts)
				if err != nil {
					t.Fatalf("%s: %v", pattern, err)
				}
				fs := report.Filesystem
				if fs.Type != kind || fs.MountPoint != filepath.Dir(dir) || !strings.HasPrefix(fs.Device, "/dev/loop") || fs.Scheduler == "" {
					t.Errorf("%s: got %+v, want %s with its device and scheduler", pattern, fs, kind)
				}
				wantEmpty(t, dir)
			}
		})
	}
}

func TestAFullDiskIsToldAndLeftClean(t *testing.T) {
	dir := mounted(t, 300, "ext4", "-m", "0")
	for name, change := range map[string]func(*disk.Options){
		"more than there is":        func(o *disk.Options) { o.Size = 1 << 40 },
		"the log's segments alone":  func(o *disk.Options) { o.Pattern, o.Size = disk.Etcd, 80<<20 },
		"bulk data beyond the disk": func(o *disk.Options) { o.Pattern, o.Size = disk.Sequential, 400<<20 },
	} {
		t.Run(name, func(t *testing.T) {
			opts := quick(dir)
			change(&opts)
			_, err := disk.Check(t.Context(), opts)
			if !errors.Is(err, disk.ErrCannotMeasure) || !strings.Contains(hint.Of(err), "--size") {
				t.Errorf("got %v with hint %q, want what to do about it", err, hint.Of(err))
			}
			wantEmpty(t, dir)
		})
	}
}

func TestADiskThatFillsUpMeanwhileIsToldAndLeftClean(t *testing.T) {
	for _, pattern := range []disk.Pattern{disk.WAL, disk.Etcd} {
		t.Run(string(pattern), func(t *testing.T) {
			dir := mounted(t, 800, "ext4", "-m", "0")
			opts := quick(dir)
			opts.Pattern, opts.Size, opts.Block, opts.Jobs, opts.Rounds = pattern, 130<<20, 64<<10, 8, 1 // cuts twice
			opts.Duration = 5 * time.Minute
			once := false
			opts.Progress = func(int64, int64) {
				if once {
					return
				}
				once = true
				// Takes all that is free, so that the next segment cannot be.
				filler := filepath.Join(filepath.Dir(dir), "filler")
				if out, err := exec.Command("sh", "-c", "cat /dev/zero > "+filler).CombinedOutput(); err == nil {
					t.Errorf("the disk did not fill up: %s", out)
				}
			}
			_, err := disk.Check(t.Context(), opts)
			if !errors.Is(err, disk.ErrCannotMeasure) || !strings.Contains(err.Error(), "no space left") || hint.Of(err) == "" {
				t.Errorf("got %v with hint %q, want that no space is left, and what to do", err, hint.Of(err))
			}
			wantEmpty(t, dir)
		})
	}
}

func TestAReadOnlyFilesystemIsTold(t *testing.T) {
	dir := mounted(t, 64, "ext4")
	if out, err := exec.Command("mount", "-o", "remount,ro", filepath.Dir(dir)).CombinedOutput(); err != nil {
		t.Fatalf("remount: %v\n%s", err, out)
	}
	_, err := disk.Check(t.Context(), quick(dir))
	if !errors.Is(err, disk.ErrCannotMeasure) || !strings.Contains(fmt.Sprint(err, hint.Of(err)), "read-write") {
		t.Errorf("got %v with hint %q, want that it is read-only", err, hint.Of(err))
	}
}
