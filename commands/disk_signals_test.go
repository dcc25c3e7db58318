//go:build linux

package commands_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startDiskCheck runs etcdkit disk check as a process that would take hours,
// and waits until it writes.
func startDiskCheck(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	args = append([]string{"disk", "check", dir, "--force", "--rounds", "100"}, args...)
	cmd := exec.CommandContext(bounded(t), installed(t, t.TempDir()), args...)
	cmd.Env = []string{"HOME=" + t.TempDir()}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it may have ended
	deadline := time.Now().Add(time.Minute)
	for !holdsScratch(cmd.Process.Pid, dir) {
		if time.Now().After(deadline) {
			t.Fatal("it has no scratch folder within a minute")
		}
		time.Sleep(5 * time.Millisecond) // until the next look
	}
	return cmd
}

// holdsScratch reports whether a process has the marker of its scratch folder in
// dir open under its own name. A process killed earlier leaves a folder without
// a marker, which no sweep touches for an hour.
func holdsScratch(pid int, dir string) bool {
	links, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "fd", "*"))
	for _, link := range links {
		if path, err := os.Readlink(link); err == nil && strings.HasPrefix(path, dir+"/") && filepath.Base(path) == "etcdkit-disk-check" {
			return true
		}
	}
	return false
}

func TestDiskCheckEndsCleanlyOnSignals(t *testing.T) {
	for name, tc := range map[string]struct {
		signal  syscall.Signal
		pattern string
	}{
		"Ctrl-C":                {syscall.SIGINT, "fio"},
		"a dropped SSH session": {syscall.SIGHUP, "wal"},
		"a service manager":     {syscall.SIGTERM, "etcd"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			cmd := startDiskCheck(t, dir, "--pattern", tc.pattern)
			if err := cmd.Process.Signal(tc.signal); err != nil {
				t.Fatal(err)
			}
			err := cmd.Wait()
			exit, ok := errors.AsType[*exec.ExitError](err)
			if !ok || exit.ExitCode() != 128+int(tc.signal) {
				t.Errorf("ended with %v, want exit code %d", err, 128+int(tc.signal))
			}
			if left := entries(t, dir); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestDiskCheckLeavesNothingEvenWhenKilled(t *testing.T) {
	dir := t.TempDir()
	cmd := startDiskCheck(t, dir)
	deadline := time.Now().Add(time.Minute)
	for len(entries(t, dir)) > 0 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond) // the name goes right after the file was opened
	}
	kill(t, cmd)
	if left := entries(t, dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestDiskCheckSweepsWhatAKilledRunLeft(t *testing.T) {
	dir := t.TempDir()
	kill(t, startDiskCheck(t, dir, "--pattern", "wal"))
	if left := entries(t, dir); len(left) != 1 || !strings.HasPrefix(left[0], ".etcdkit-disk-") {
		t.Fatalf("a killed run left %v, want its folder", left)
	}
	if code, _, errs := diskCheck(t, dir, "--require", "p99=1h"); code != 0 {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	if left := entries(t, dir); len(left) > 0 {
		t.Errorf("not swept: %v", left)
	}
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed, as wanted
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}
