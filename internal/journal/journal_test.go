package journal_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/journal"
)

func TestRunsSideBySideDoNotMix(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			code := i
			if err := journal.Append(dir, journal.Entry{Time: time.Unix(0, 0).UTC(), Event: journal.End, Command: "del", Arguments: []string{"/a", "/b"}, ExitCode: &code}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	path := filepath.Join(dir, journal.File)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	seen := map[int]bool{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var e journal.Entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		seen[*e.ExitCode] = true
	}
	if len(seen) != 20 {
		t.Errorf("%d entries, want 20", len(seen))
	}
}

func TestAFolderThatCannotBeMadeIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := journal.Append(filepath.Join(file, "state"), journal.Entry{}); err == nil {
		t.Error("no error")
	}
}

// A journal that is a link, a pipe or a second name of a file leads to somebody
// else's file.
func TestWhatOnlyHasTheJournalsNameIsLeftAlone(t *testing.T) {
	for name, lay := range map[string]func(other, path string) error{
		"a symbolic link":     os.Symlink,
		"a second name":       os.Link,
		"a folder":            func(_, path string) error { return os.Mkdir(path, 0o700) },
		"a link to nowhere":   func(other, path string) error { return os.Symlink(other+"-missing", path) },
		"a pipe without peer": func(_, path string) error { return mkfifo(path) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, other := t.TempDir(), filepath.Join(t.TempDir(), "other")
			if err := os.WriteFile(other, []byte("theirs"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := lay(other, filepath.Join(dir, journal.File)); err != nil {
				t.Skip(err)
			}
			if err := journal.Append(dir, journal.Entry{Command: "del"}); err == nil {
				t.Error("no error")
			}
			if got, err := os.ReadFile(other); err != nil || string(got) != "theirs" {
				t.Errorf("the other file now holds %q, %v", got, err)
			}
			if _, err := os.Stat(other + "-missing"); err == nil {
				t.Error("a file was made behind the link")
			}
		})
	}
}

func TestTheJournalIsBounded(t *testing.T) {
	dir := t.TempDir()
	path, old := filepath.Join(dir, journal.File), filepath.Join(dir, journal.OldFile)
	if err := os.WriteFile(path, make([]byte, journal.MaxSize-10), 0o600); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if err := journal.Append(dir, journal.Entry{Command: "del"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var lines int
	for _, name := range []string{path, old} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines += bytes.Count(b, []byte("\n"))
		if name == path && len(b) > 1<<20 {
			t.Errorf("the new journal has %d bytes", len(b))
		}
	}
	if lines != 20 {
		t.Errorf("%d lines, want 20: a full journal was replaced twice", lines)
	}
}
