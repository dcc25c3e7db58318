package dirfd

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A link is not followed wherever it leads: one that stays in the folder is
// relative, which no other rule of the kernel refuses.
func TestNoLinkIsFollowed(t *testing.T) {
	for target, make := range map[string]func(dir string) error{
		"real":    func(string) error { return nil },
		"./real":  func(string) error { return nil },
		"../sub":  func(dir string) error { return os.Mkdir(filepath.Join(filepath.Dir(dir), "sub"), 0o700) },
		"/tmp":    func(string) error { return nil },
		"missing": func(string) error { return nil },
	} {
		t.Run(target, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "dir")
			err := errors.Join(os.Mkdir(dir, 0o700), os.Mkdir(filepath.Join(dir, "real"), 0o700), make(dir), os.Symlink(target, filepath.Join(dir, "link")),
				os.WriteFile(filepath.Join(dir, "file"), nil, 0o600), os.Symlink("file", filepath.Join(dir, "to-file")), os.Symlink("new", filepath.Join(dir, "to-new")))
			if err != nil {
				t.Fatal(err)
			}
			d, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			for name, open := range map[string]func(string) (*Dir, error){"OpenDir": d.OpenDir, "Enter": d.Enter, "Walk": d.Walk} {
				if sub, err := open("link"); !errors.Is(err, ErrLink) {
					t.Errorf("%s opened %v, %v", name, sub, err)
				}
			}
			for name, flags := range map[string]int{"to-file": os.O_RDWR, "to-new": os.O_RDWR | os.O_CREATE} {
				if f, err := d.OpenFile(name, flags, 0o600); !errors.Is(err, ErrLink) {
					t.Errorf("%s: opened %v, %v", name, f, err)
				}
			}
			if _, err := openOneName(d.fd(), "to-file", unix.O_RDONLY, 0, false); !errors.Is(err, unix.ELOOP) {
				t.Errorf("on an old kernel: %v", err)
			}
			if _, err := os.Lstat(filepath.Join(dir, "new")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a file was made through a link: %v", err)
			}
		})
	}
}

// What is mounted below a folder is not removed with it, on a real mount of the
// same filesystem.
func TestWhatIsMountedBelowStays(t *testing.T) {
	const inside = "ETCDKIT_TEST_DIRFD_INSIDE"
	if base := os.Getenv(inside); base != "" {
		d, err := Open(base)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount(filepath.Join(base, "outside"), filepath.Join(base, "dead", "sub"), "", unix.MS_BIND, ""); err != nil {
			t.Skipf("SKIPPED: no mounts: %v", err)
		}
		if err := d.RemoveAll("dead"); !errors.Is(err, ErrMount) {
			t.Errorf("remove: %v, want ErrMount", err)
		}
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root, for a mount")
	}
	base := t.TempDir()
	precious := filepath.Join(base, "outside", "precious")
	err := errors.Join(os.MkdirAll(filepath.Join(base, "dead", "sub"), 0o700), os.Mkdir(filepath.Join(base, "outside"), 0o700), os.WriteFile(precious, nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWhatIsMountedBelowStays$", "-test.v")
	cmd.Env = append(os.Environ(), inside+"="+base)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, os.ErrPermission) {
		t.Skipf("SKIPPED: no mount namespace: %v", err)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Errorf("removed through a mount: %v", err)
	}
}
