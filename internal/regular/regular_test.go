//go:build unix

package regular

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Only regular files are opened, and nothing waits.
func TestOnlyRegularFilesAreOpened(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(os.WriteFile(path("file"), []byte("text"), 0o600), os.Symlink("file", path("link")), unix.Mkfifo(path("pipe"), 0o600), os.Symlink("pipe", path("to-pipe")))
	if err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", path("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	for name, want := range map[string]error{
		path("file"): nil, path("link"): nil, path("missing"): os.ErrNotExist,
		dir: ErrNotRegular, path("pipe"): ErrNotRegular, path("to-pipe"): ErrNotRegular, path("socket"): ErrNotRegular, "/dev/zero": ErrNotRegular,
	} {
		done := make(chan error, 1)
		go func() { _, err := ReadFile(name, 4); done <- err }()
		select {
		case err := <-done:
			if !errors.Is(err, want) || (want == nil) != (err == nil) {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: it waits", name)
		}
	}
	if _, err := ReadFile(path("file"), 3); err == nil {
		t.Error("a file over the limit was read")
	}
}
