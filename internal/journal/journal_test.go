package journal_test

import (
	"bufio"
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
