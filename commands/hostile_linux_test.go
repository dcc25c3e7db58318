package commands_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

const (
	attackerUID = 12345 // owns the folders
	victimUID   = 12346 // runs the commands, where that is not root
	hostileTime = 2 * time.Minute
	stash       = "stash" // where the attacker moves what was there
	trapName    = "trap"  // in the names that the attacker leaves alone
)

// hostileFolder is a folder of the attacker's in which a command makes, sweeps
// or removes something.
type hostileFolder struct {
	name    string
	prefix  string   // of what the command makes there
	markers []string // names that mean something in it
	args    []string // DIR is the folder, BASE what all of them are in
	env     []string
}

func hostileFolders(endpoint string) []hostileFolder {
	marker := []string{"in-use", "new", "member", "wal", "m1.etcd"}
	return []hostileFolder{
		{
			"disk", ".etcdkit-disk-",
			[]string{"etcdkit-disk-check", "new", "0", "wal"},
			[]string{"disk", "check", "DIR", "--force", "--size", "276000", "--rounds", "2", "--skip-bandwidth"},
			nil,
		},
		{
			"log", ".etcdkit-disk-",
			[]string{"etcdkit-disk-check", "new", "0", "wal"},
			[]string{"disk", "check", "DIR", "--force", "--pattern", "wal", "--size", "276000", "--rounds", "1", "--skip-bandwidth"},
			nil,
		},
		{"restore", ".etcdkit-restore-", marker, []string{"snapshot", "restore", "BASE/shared/snap.db", "--data-dir", "DIR", "--move-aside"}, nil},
		{"wal", ".etcdkit-restore-", marker, []string{"snapshot", "restore", "BASE/shared/snap.db", "--data-dir", "BASE/restore/sub", "--wal-dir", "DIR/wal", "--move-aside"}, nil},
		{"drill", "etcdkit-drill-", marker, []string{"snapshot", "verify", "BASE/shared/snap.db", "--drill", "--scratch", "DIR"}, nil},
		{"playground", "etcdkit-cluster-", marker, []string{"playground", "--", "/bin/true"}, []string{"TMPDIR=DIR"}},
		{"save", ".backup.db.", []string{"backup.db"}, []string{"snapshot", "save", "DIR/backup.db", "--endpoints", endpoint}, []string{"XDG_STATE_HOME=BASE/state"}},
		{"repo", ".2", []string{"x"}, []string{"snapshot", "save", "DIR/", "--keep-last", "1", "--endpoints", endpoint}, []string{"XDG_STATE_HOME=BASE/state"}},
		{"state/etcdkit/runs", "", []string{"x.run"}, []string{"snapshot", "prune", "BASE/repo/", "--keep-last", "1", "--yes"}, []string{"XDG_STATE_HOME=BASE/state"}},
	}
}

// Whoever owns a folder in which commands make and sweep things swaps links,
// pipes and hard links into it at random: nothing outside of it is touched, and
// no command hangs.
func TestHostileFolders(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root, to act as two other users")
	}
	cluster := etcdtest.StartServers(t, etcdtest.ServerOptions{})
	for name, uid := range map[string]uint32{"as root": 0, "as another user": victimUID} {
		t.Run(name, func(t *testing.T) {
			h := newHostile(t, uid, hostileFolders(cluster.Endpoints()[0]))
			before, traps := describeTree(t, h.outside), h.setTraps(t)
			stop := h.attack(t)
			for range hostileRounds {
				for _, f := range h.folders {
					h.run(t, f)
				}
			}
			if swaps := stop(); swaps < len(h.folders) {
				t.Errorf("%d attacks, want some on every folder", swaps)
			}
			for trap, want := range traps {
				if got := describeTree(t, trap); got != want {
					t.Errorf("%s was\n%s\nand is\n%s", trap, want, got)
				}
			}
			if after := describeTree(t, h.outside); after != before {
				t.Errorf("outside of the folders there was\n%s\nand is\n%s", before, after)
			}
		})
	}
}

type hostile struct {
	base, outside, program string
	uid                    uint32
	folders                []hostileFolder
}

func newHostile(t *testing.T, uid uint32, folders []hostileFolder) *hostile {
	t.Helper()
	base, err := os.MkdirTemp("", "hostile-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(base); err != nil {
			t.Error(err)
		}
	})
	h := &hostile{base: base, outside: filepath.Join(base, "outside"), uid: uid, folders: folders}
	shared := filepath.Join(base, "shared")
	snap, err := os.ReadFile("../snapshot/testdata/kubernetes.db")
	err = errors.Join(err, os.Chmod(base, 0o755), os.Mkdir(shared, 0o755), os.WriteFile(filepath.Join(shared, "snap.db"), snap, 0o644),
		os.Chmod(shared, 0o755), os.Chmod(filepath.Join(shared, "snap.db"), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h.program = filepath.Join(shared, "etcdkit")
	if err := os.Link(self, h.program); err != nil { // the folder of the test binary is for its owner alone
		t.Fatal(err)
	}
	folders = append(folders, hostileFolder{name: stash})
	for _, f := range folders {
		dir := filepath.Join(base, f.name)
		if err := errors.Join(os.MkdirAll(dir, 0o777), os.Chown(dir, attackerUID, attackerUID), os.Chmod(dir, 0o777)); err != nil {
			t.Fatal(err)
		}
		for at := filepath.Dir(dir); at != base; at = filepath.Dir(at) {
			if err := errors.Join(os.Chown(at, attackerUID, attackerUID), os.Chmod(at, 0o777)); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Outside there is what a command would take for its own, were it led there.
	for _, f := range h.folders {
		for _, name := range append(f.markers, f.prefix+"0badcafe0badcafe", "db", "snap/db", "member/snap/db") {
			path := filepath.Join(h.outside, filepath.FromSlash(name))
			if name == "member" || name == "wal" || name == "snap" {
				path = filepath.Join(path, "file")
			}
			_ = os.MkdirAll(filepath.Dir(path), 0o700)
			_ = os.WriteFile(path, []byte("precious"), 0o600)
		}
	}
	err = filepath.WalkDir(h.outside, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, int(uid), int(uid)))
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// setTraps puts into each folder what looks like a dead folder of the victim's
// and fails one check alone: of its owner, of the owner of its marker, of the
// names of its marker. The attacker leaves them alone, so that only a command
// can touch them. It returns them with what they hold.
func (h *hostile) setTraps(t *testing.T) map[string]string {
	t.Helper()
	traps := map[string]string{}
	for _, f := range h.folders {
		if f.prefix == "" {
			continue
		}
		for i, trap := range []struct{ dirOwner, markerOwner, names int }{
			{attackerUID, int(h.uid), 1},
			{int(h.uid), attackerUID, 1},
			{int(h.uid), int(h.uid), 2},
		} {
			dir := filepath.Join(h.base, f.name, fmt.Sprintf("%s%s%d", f.prefix, trapName, i))
			marker := filepath.Join(dir, f.markers[0])
			err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(marker, nil, 0o600), os.Chown(marker, trap.markerOwner, trap.markerOwner))
			if trap.names > 1 {
				err = errors.Join(err, os.Link(marker, filepath.Join(dir, "second")))
			}
			if err = errors.Join(err, os.Chown(dir, trap.dirOwner, trap.dirOwner)); err != nil {
				t.Fatal(err)
			}
			traps[dir] = describeTree(t, dir)
		}
	}
	return traps
}

// run runs a command. It may fail, but it must end.
func (h *hostile) run(t *testing.T, f hostileFolder) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hostileTime)
	defer cancel()
	fill := strings.NewReplacer("DIR", filepath.Join(h.base, f.name), "BASE", h.base)
	args := []string{}
	for _, a := range f.args {
		args = append(args, fill.Replace(a))
	}
	cmd := exec.CommandContext(ctx, h.program, args...)
	cmd.Dir = filepath.Join(h.base, "shared")
	cmd.Env = []string{"HOME=/nonexistent", "TMPDIR=/tmp", "PATH=" + os.Getenv("PATH"), "ETCDKIT_DISCOVER=none"}
	for _, e := range f.env {
		cmd.Env = append(cmd.Env, fill.Replace(e))
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: h.uid, Gid: h.uid}}
	// What hangs prints where it does.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Errorf("%s: still running after %s\n%s", strings.Join(args, " "), hostileTime, out)
		return
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Errorf("%s: %v", strings.Join(args, " "), err)
	}
	if strings.Contains(string(out), "goroutine ") || strings.Contains(string(out), "panic:") {
		t.Errorf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	t.Logf("%s: %v: %s", f.name, err, lastLine(string(out)))
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// attack swaps what is in the folders, as their owner, until stop is called,
// which tells how often something was swapped.
func (h *hostile) attack(t *testing.T) (stop func() int) {
	t.Helper()
	over, swaps := make(chan struct{}), make(chan int, 1)
	go func() {
		// The thread, and it alone, becomes the attacker's; it ends with the goroutine.
		runtime.LockOSThread()
		for _, call := range []uintptr{unix.SYS_SETRESGID, unix.SYS_SETRESUID} {
			if _, _, errno := unix.RawSyscall(call, attackerUID, attackerUID, attackerUID); errno != 0 {
				t.Errorf("become the attacker: %v", errno)
				swaps <- 0
				return
			}
		}
		random, n := rand.New(rand.NewPCG(1, uint64(h.uid))), 0
		for {
			select {
			case <-over:
				swaps <- n
				return
			default:
			}
			f := h.folders[random.IntN(len(h.folders))]
			if h.swap(random, filepath.Join(h.base, f.name), f) == nil {
				n++
			}
			if n%64 == 0 {
				time.Sleep(time.Millisecond) // the commands need a processor, too
			}
		}
	}()
	return func() int { close(over); return <-swaps }
}

// swap makes one change in a folder.
func (h *hostile) swap(random *rand.Rand, dir string, f hostileFolder) error {
	decoy := filepath.Join(dir, f.prefix+fmt.Sprintf("%016x", random.Uint64N(8)))
	marker := f.markers[random.IntN(len(f.markers))]
	switch random.IntN(10) {
	case 0: // a link in the place of a folder
		return os.Symlink(h.outside, decoy)
	case 8: // one that stays in the folder: to what is the victim's there
		return os.Symlink(f.prefix+trapName+"2", decoy)
	case 9: // a marker that is a link beside it, and a hard link to it
		return errors.Join(os.Mkdir(decoy, 0o777), os.WriteFile(filepath.Join(decoy, "z"), nil, 0o666), os.Symlink("z", filepath.Join(decoy, marker)),
			os.Link(filepath.Join(decoy, "z"), filepath.Join(decoy, "second")))
	case 1: // a folder with a pipe as its marker
		return errors.Join(os.Mkdir(decoy, 0o777), unix.Mkfifo(filepath.Join(decoy, marker), 0o666))
	case 2: // a folder with a link as its marker, and one beside it
		return errors.Join(os.Mkdir(decoy, 0o777), os.Symlink(filepath.Join(h.outside, marker), filepath.Join(decoy, marker)), os.Symlink(h.outside, filepath.Join(decoy, "sub")))
	case 3: // a hard link to somebody's file, or a second name
		_ = os.Mkdir(decoy, 0o777)
		return errors.Join(os.WriteFile(filepath.Join(decoy, "z"), nil, 0o666), os.Link(filepath.Join(decoy, "z"), filepath.Join(decoy, marker)))
	case 4, 5: // what a command has just made, moved away and replaced
		return h.steal(random, dir)
	case 6: // a pipe in the place of anything
		return unix.Mkfifo(decoy, 0o666)
	}
	// Room for new decoys. What is the victim's own stays.
	entries, err := readSwappable(dir)
	if err == nil && len(entries) > 0 {
		err = os.RemoveAll(filepath.Join(dir, entries[random.IntN(len(entries))].Name()))
	}
	return err
}

// readSwappable lists a folder without its traps.
func readSwappable(dir string) ([]os.DirEntry, error) {
	entries, err := os.ReadDir(dir)
	return slices.DeleteFunc(entries, func(e os.DirEntry) bool { return strings.Contains(e.Name(), trapName) }), err
}

// steal puts a link or a pipe in the place of something that is there.
func (h *hostile) steal(random *rand.Rand, dir string) error {
	entries, err := readSwappable(dir)
	if err != nil || len(entries) == 0 {
		return errors.Join(err, fs.ErrNotExist)
	}
	name := entries[random.IntN(len(entries))].Name()
	path := filepath.Join(dir, name)
	if err := os.Rename(path, filepath.Join(h.base, stash, fmt.Sprint(random.Uint64()))); err != nil {
		return err
	}
	if random.IntN(4) == 0 {
		return unix.Mkfifo(path, 0o666)
	}
	if random.IntN(2) == 0 {
		return os.Symlink("../outside", path)
	}
	return os.Symlink(h.outside, path)
}

// describeTree lists everything in a folder, with content, owner and times.
func describeTree(t *testing.T, root string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		content := []byte(nil)
		if info.Mode().IsRegular() {
			content, err = os.ReadFile(path)
		}
		fmt.Fprintf(&b, "%s %s inode %d links %d owner %d:%d changed %d.%d %q\n",
			path, info.Mode(), st.Ino, st.Nlink, st.Uid, st.Gid, st.Ctim.Sec, st.Ctim.Nsec, content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
