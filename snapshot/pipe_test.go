//go:build unix

package snapshot

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/etcdkit/etcdkit/internal/regular"
)

// A pipe in the place of a file that has to be a regular one is refused, and
// no command waits for its writer.
func TestAPipeInThePlaceOfAFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(unix.Mkfifo(path("pipe.db"), 0o600), os.WriteFile(path("file.db"), []byte("x"), 0o600), unix.Mkfifo(path("file.db.json"), 0o600),
		os.MkdirAll(path("data/member/snap"), 0o700), unix.Mkfifo(path("data/member/snap/db"), 0o600), os.Mkdir(path("wal"), 0o700), unix.Mkfifo(path("wal/0000000000000000-0000000000000000.wal"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func() error{
		"verify":     func() error { _, err := VerifyFile(t.Context(), path("pipe.db"), VerifyOptions{}); return err },
		"a manifest": func() error { _, err := ManifestOf(path("file.db")); return err },
		"decode":     func() error { return new(decoded).use(path("pipe.db")) },
		"examine":    func() error { return new(Manifest).examine(t.Context(), path("pipe.db")) },
		"in use":     func() error { return refuseInUse(path("data")) },
		"replace":    func() error { _, err := describeFile(t.Context(), path("pipe.db"), nil, ""); return err },
		"a log":      func() error { _, err := openWalker(path("wal")); return err },
		"no data yet": func() error {
			return errors.Join(refuseInUse(path("nothing")), refuseInUse(path("file.db")), regular.ErrNotRegular)
		},
	} {
		t.Run(name, func(t *testing.T) {
			done := make(chan error, 1)
			go func() { done <- read() }()
			select {
			case err := <-done:
				if !errors.Is(err, regular.ErrNotRegular) || errors.Is(err, os.ErrNotExist) {
					t.Errorf("got %v, want ErrNotRegular", err)
				}
			case <-time.After(time.Minute):
				t.Error("it waits")
			}
		})
	}
}
