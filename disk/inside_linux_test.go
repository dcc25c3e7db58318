package disk_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/etcdkit/etcdkit/disk"
	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

const envInside = "ETCDKIT_TEST_DISK_INSIDE"

// TestMain measures the folders that the variable names, where there is one:
// the tests below start this program anew in namespaces of its own.
func TestMain(m *testing.M) {
	script, inside := os.LookupEnv(envInside)
	if !inside {
		os.Exit(m.Run())
	}
	prepare, dirs, _ := strings.Cut(script, "\n")
	if out, err := exec.Command("sh", "-ec", prepare).CombinedOutput(); err != nil {
		fmt.Printf("CANNOT PREPARE: %v %s\n", err, out)
		os.Exit(0)
	}
	for _, dir := range strings.Fields(dirs) {
		opts := quick(dir)
		opts.Rounds, opts.Size, opts.Force = 1, 100*2300, strings.HasPrefix(filepath.Base(dir), "f-")
		report, err := disk.Check(context.Background(), opts)
		fmt.Printf("%s: %v\n", dir, err)
		if report == nil {
			continue
		}
		fmt.Printf("%s: measured, gentle %v, unseen %v\n", dir, report.Gentle, report.UnseenProcesses > 0)
		for _, w := range report.Warnings {
			fmt.Printf("%s: warning %s: %s\n", dir, w.Name, w.Text)
		}
	}
}

// inside runs TestMain's measurement and returns the lines about each folder.
func inside(t *testing.T, attr *syscall.SysProcAttr, prepare string, dirs ...string) map[string]string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root, for namespaces and mounts")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(openDir(t), "disk.test")
	if err := os.Link(self, program); err != nil { // another user may not enter the folder of the test binary
		t.Skipf("SKIPPED: the test binary is on another filesystem: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), envInside+"="+strings.ReplaceAll(prepare, "\n", ";")+"\n"+strings.Join(dirs, " "))
	cmd.SysProcAttr = attr
	out, err := cmd.CombinedOutput()
	if errors.Is(err, fs.ErrPermission) || strings.Contains(string(out), "CANNOT PREPARE") {
		t.Skipf("SKIPPED: this system gives no namespaces or mounts: %v %s", err, out)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	about := map[string]string{}
	for _, dir := range dirs {
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, dir+": ") {
				about[dir] += line
			}
		}
	}
	return about
}

// openDir returns a folder that every user may enter.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "disk-inside-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

func wantAbout(t *testing.T, about map[string]string, dir string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(about[dir], w) {
			t.Errorf("%s: %q is missing in\n%s", filepath.Base(dir), w, about[dir])
		}
	}
}

// A real etcd outside of the PID namespace is found by its lock. Beside it the
// load is reduced, for it cannot be ruled out.
func TestAnEtcdInAnotherPIDNamespaceIsFound(t *testing.T) {
	base := openDir(t)
	etcdtest.Start(t, embedded.Options{Dir: base})
	data, err := filepath.Glob(filepath.Join(base, "*", "member"))
	if err != nil || len(data) != 1 {
		t.Fatalf("data directories %v, %v", data, err)
	}
	dir := filepath.Dir(data[0])
	beside := openDir(t)
	about := inside(t, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Unshareflags: syscall.CLONE_NEWNS},
		"mount -t proc proc /proc", dir, data[0], beside)
	wantAbout(t, about, dir, disk.ErrEtcdRunning.Error(), "holds the lock of "+filepath.Join(dir, "member", "snap", "db"))
	wantAbout(t, about, data[0], disk.ErrEtcdRunning.Error())
	wantAbout(t, about, beside, "gentle true", "warning unseen", "PID namespace")
}

// Another user may not enter the data directory, nor look into processes.
func TestWhatAnotherUserCannotSeeIsSaid(t *testing.T) {
	closed, full := openDir(t), filepath.Join(openDir(t), "f-orced")
	err := errors.Join(os.Mkdir(filepath.Join(closed, "member"), 0o700), os.Mkdir(full, 0o700), os.Chown(full, 12346, 12346))
	if err != nil {
		t.Fatal(err)
	}
	about := inside(t, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12346, Gid: 12346}}, "true", closed, full)
	wantAbout(t, about, closed, "gentle true, unseen true", "could not be looked into", "permission denied")
	wantAbout(t, about, full, "gentle false, unseen true", "--force measured at full speed")
}

// Overlays and loop devices are looked through, on real mounts.
func TestMemoryUnderneathIsFound(t *testing.T) {
	base := openDir(t)
	path := func(name string) string { return filepath.Join(base, name) }
	prepare := strings.ReplaceAll(`cd BASE; mkdir mem mem2 lower up work f-ov f-hidden f-disk f-loop f-file
mount -t tmpfs none mem; mount -t tmpfs none mem2; mkdir mem/u mem/w mem2/u mem2/w
mount -t overlay -o lowerdir=BASE/lower,upperdir=BASE/mem/u,workdir=BASE/mem/w none f-ov
mount -t overlay -o lowerdir=BASE/lower,upperdir=BASE/mem2/u,workdir=BASE/mem2/w none f-hidden
mount -t overlay -o lowerdir=BASE/lower,upperdir=BASE/up,workdir=BASE/work none f-disk
mount --move mem2 lower
for at in mem/img img; do truncate -s 16M $at; mkfs.ext4 -q $at; done
mount -o loop mem/img f-loop; mount -o loop img f-file`, "BASE", base)
	about := inside(t, &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}, prepare,
		path("f-ov"), path("f-hidden"), path("f-disk"), path("f-loop"), path("f-file"))
	wantAbout(t, about, path("f-ov"), disk.ErrCannotMeasure.Error(), "overlay over "+path("mem/u")+" (tmpfs), which is memory")
	wantAbout(t, about, path("f-loop"), disk.ErrCannotMeasure.Error(), "ext4 over "+path("mem/img")+" (tmpfs), which is memory")
	wantAbout(t, about, path("f-hidden"), "measured", "warning underneath", "cannot be seen from here")
	wantAbout(t, about, path("f-file"), "measured", "warning underneath", path("img"))
	wantAbout(t, about, path("f-disk"), "measured", "warning overlay")
	if strings.Contains(about[path("f-disk")], "warning underneath") {
		t.Errorf("an overlay over a disk: %s", about[path("f-disk")])
	}
}
