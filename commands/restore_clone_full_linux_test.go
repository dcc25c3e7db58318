//go:build full

package commands_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

// xfs mounts a filesystem whose files can share blocks, which needs root and
// xfsprogs.
func xfs(t *testing.T) string {
	t.Helper()
	image, dir := filepath.Join(t.TempDir(), "image"), t.TempDir()
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 400<<20); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"mkfs.xfs", "-q", "-m", "reflink=1", image}, {"mount", "-o", "loop", image, dir}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Skipf("SKIPPED: %s: %v %s", args[0], err, out)
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
	})
	return dir
}

// used returns the bytes that files take on a filesystem.
func used(t *testing.T, dir string) int64 {
	t.Helper()
	syscall.Sync()
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	return int64(st.Blocks-st.Bfree) * st.Bsize
}

// allocated returns the bytes that the files of a folder take.
func allocated(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	for _, name := range entries(t, dir) {
		var st unix.Stat_t
		if err := unix.Stat(filepath.Join(dir, name), &st); err != nil {
			t.Fatal(err)
		}
		bytes += st.Blocks * 512
	}
	return bytes
}

func TestARestoreSharesTheBlocksOfAFile(t *testing.T) {
	disk := xfs(t)
	c := etcdtest.Start(t, embedded.Options{})
	etcdtest.Fill(t, etcdtest.Client(t, c.Endpoints()...), "k/", 8000, 3000)
	file := filepath.Join(disk, "backup.db")
	if code, _, errs := kit(t, "--endpoints", c.Endpoints()[0], "snapshot", "save", file); code != 0 {
		t.Fatalf("save: exit code %d\n%s", code, errs)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	before, target := used(t, disk), filepath.Join(disk, "d")
	restore := exec.Command(installed(t, t.TempDir()), "snapshot", "restore", file, "--data-dir", target)
	if out, err := restore.CombinedOutput(); err != nil {
		t.Fatalf("restore: %v\n%s", err, out)
	}
	log := allocated(t, filepath.Join(target, "member", "wal"))
	// XFS frees in its own time what was deleted, a log segment made ahead.
	etcdtest.Until(t, "a restore shares the file's blocks", func(context.Context) bool {
		return used(t, disk)-before-log < info.Size()/2
	})
	_, want, _ := kit(t, "hashkv", file)
	if _, got, errs := kit(t, "hashkv", target); got != want || got == "" {
		t.Errorf("hash %q, want that of the file, %q\n%s", got, want, errs)
	}
}
