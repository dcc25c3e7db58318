//go:build unix

package scratch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/etcdkit/etcdkit/internal/dirfd"
)

// What is not certainly the caller's own dead folder is left alone and told of,
// and nothing waits.
func TestWhatIsNotOursIsLeftAlone(t *testing.T) {
	outside := t.TempDir()
	precious := filepath.Join(outside, "precious")
	for name, tc := range map[string]struct {
		make func(dir string) error
		want error
		root bool
	}{
		"a link to a folder that looks dead": {func(dir string) error { return os.Symlink(outside, dir) }, dirfd.ErrLink, false},
		"a file":                             {func(dir string) error { return os.WriteFile(dir, nil, 0o600) }, ErrUnsafe, false},
		"a pipe":                             {func(dir string) error { return unix.Mkfifo(dir, 0o600) }, ErrUnsafe, false},
		"a pipe as its marker": {func(dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), unix.Mkfifo(filepath.Join(dir, kind.Marker), 0o600))
		}, dirfd.ErrNotRegular, false},
		"a link as its marker": {func(dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.Symlink(filepath.Join(outside, kind.Marker), filepath.Join(dir, kind.Marker)))
		}, dirfd.ErrLink, false},
		"a marker with two names": {func(dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.Link(filepath.Join(outside, kind.Marker), filepath.Join(dir, kind.Marker)))
		}, ErrUnsafe, false},
		"others can write to it": {func(dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o722), os.WriteFile(filepath.Join(dir, kind.Marker), nil, 0o600))
		}, ErrUnsafe, false},
		"another user's": {func(dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, kind.Marker), nil, 0o600), os.Chown(dir, 12345, 12345))
		}, ErrOwner, true},
		"another user's marker": {func(dir string) error {
			marker := filepath.Join(dir, kind.Marker)
			return errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(marker, nil, 0o600), os.Chown(marker, 12345, 12345))
		}, ErrOwner, true},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.root && os.Geteuid() != 0 {
				t.Skip("SKIPPED: needs root, to give files away")
			}
			parent := t.TempDir()
			dir := filepath.Join(parent, kind.Prefix+"1")
			err := errors.Join(os.WriteFile(precious, nil, 0o600), os.WriteFile(filepath.Join(outside, kind.Marker), nil, 0o600), tc.make(dir))
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan []Left, 1)
			go func() { left, _ := kind.Sweep(parent); done <- left }()
			select {
			case left := <-done:
				if len(left) != 1 || left[0].Path != dir || !errors.Is(left[0].Err, tc.want) {
					t.Errorf("left %v, want %s for %v", left, dir, tc.want)
				}
			case <-time.After(time.Minute):
				t.Fatal("the sweep hangs")
			}
			for _, path := range []string{dir, precious, filepath.Join(outside, kind.Marker)} {
				if _, err := os.Lstat(path); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// What a dead folder holds is removed without following a link out of it.
func TestADeadFolderIsRemovedWithoutFollowingLinks(t *testing.T) {
	parent, outside := t.TempDir(), t.TempDir()
	dead := deadFolder(t, parent)
	precious := filepath.Join(outside, "precious")
	err := errors.Join(os.WriteFile(precious, nil, 0o600), os.Symlink(outside, filepath.Join(dead, "link")),
		os.Symlink(precious, filepath.Join(dead, "member", "file")), unix.Mkfifo(filepath.Join(dead, "pipe"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if left := sweep(t, parent); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	wantEmpty(t, parent)
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}

// A folder in use that somebody renames and replaces by a link: its files go
// through the handle, and what the link leads to stays.
func TestAFolderThatIsReplacedWhileInUse(t *testing.T) {
	parent, outside := t.TempDir(), t.TempDir()
	f, err := kind.New(parent)
	if err != nil {
		t.Fatal(err)
	}
	stolen := filepath.Join(parent, "stolen")
	if err := errors.Join(os.Rename(f.Path(), stolen), os.Symlink(outside, f.Path())); err != nil {
		t.Fatal(err)
	}
	if f.Through() != f.Path() { // where the system has such paths
		if err := os.WriteFile(filepath.Join(f.Through(), "data"), nil, 0o600); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(stolen, "data")); err != nil {
			t.Errorf("the file went elsewhere: %v", err)
		}
	}
	if err := os.WriteFile(filepath.Join(outside, kind.Marker), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Remove(); !errors.Is(err, ErrUnsafe) {
		t.Errorf("remove: %v, want ErrUnsafe", err)
	}
	if _, err := os.Stat(filepath.Join(outside, kind.Marker)); err != nil {
		t.Error(err)
	}
	wantEmpty(t, stolen)
	if _, err := os.Stat(stolen); errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
