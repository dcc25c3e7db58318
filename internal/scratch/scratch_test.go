package scratch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/dirfd"
)

var kind = Kind{Prefix: ".etcdkit-test-", Marker: "in-use"}

const (
	raceStarters = 4
	raceSweepers = 2
)

// besideSweepers runs starters until they are done, and sweepers all the while.
func besideSweepers(t *testing.T, start func(i int) error, sweep func() error) {
	t.Helper()
	over := make(chan struct{})
	var starters, sweepers sync.WaitGroup
	for range raceSweepers {
		sweepers.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				if err := sweep(); err != nil {
					t.Errorf("sweep: %v", err)
					return
				}
			}
		})
	}
	for n := range raceStarters {
		starters.Go(func() {
			for i := range raceStarts {
				if err := start(n*raceStarts + i); err != nil {
					t.Errorf("start %d: %v", i, err)
					return
				}
			}
		})
	}
	starters.Wait()
	close(over)
	sweepers.Wait()
}

// Nobody takes a folder for dead while it is made, and none fails for it.
func TestFoldersAreMadeBesideSweepers(t *testing.T) {
	parent := t.TempDir()
	besideSweepers(t, func(int) error {
		f, err := kind.New(parent)
		if err != nil {
			return err
		}
		file := filepath.Join(f.Through(), "data")
		return errors.Join(os.WriteFile(file, nil, 0o600), os.Remove(file), f.Remove())
	}, func() error {
		left, err := kind.Sweep(parent)
		if len(left) > 0 {
			err = errors.Join(err, fmt.Errorf("left: %v", left))
		}
		return err
	})
	wantEmpty(t, parent)
}

// The same for locked files, which have their content when they have a name.
func TestLockedFilesAreMadeBesideSweepers(t *testing.T) {
	dir := open0(t, t.TempDir())
	besideSweepers(t, func(i int) error {
		lock, err := Create(dir, fmt.Sprintf("%d.run", i), []byte("content"))
		if err != nil {
			return err
		}
		return lock.Remove()
	}, func() error {
		names, err := dir.Names()
		for _, name := range names {
			if !strings.HasSuffix(name, ".run") {
				continue
			}
			lock, lockErr := Open(dir, name)
			if errors.Is(lockErr, ErrLocked) || errors.Is(lockErr, fs.ErrNotExist) {
				continue
			}
			if lockErr == nil {
				lockErr = errors.Join(fmt.Errorf("%s of a living process was not locked", name), lock.Close())
			}
			err = errors.Join(err, lockErr)
		}
		return err
	})
	wantEmpty(t, dir.Path())
}

func TestAFolderInUseStaysAndADeadOneGoes(t *testing.T) {
	parent := t.TempDir()
	living, err := kind.New(parent)
	if err != nil {
		t.Fatal(err)
	}
	dead := deadFolder(t, parent)
	sweep(t, parent)
	if _, err := os.Stat(living.Path()); err != nil {
		t.Errorf("a folder in use: %v", err)
	}
	if _, err := os.Stat(dead); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("stat of a dead one: %v, want it gone", err)
	}
	if err := errors.Join(living.Remove(), living.Remove()); err != nil {
		t.Error(err)
	}
	wantEmpty(t, parent)
}

// What a process left that died while it made its folder goes after an hour,
// and nothing that holds more.
func TestFoldersWithoutAMarker(t *testing.T) {
	for name, tc := range map[string]struct {
		holds      string
		old        bool
		gone, told bool
	}{
		"empty and young":           {"", false, false, false},
		"empty and old":             {"", true, true, false},
		"with an unlocked new one":  {newMarker, true, true, false},
		"with something in it":      {"notes.txt", true, false, true},
		"young, with much the same": {"notes.txt", false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			dir := filepath.Join(parent, kind.Prefix+"1")
			err := os.Mkdir(dir, 0o700)
			if tc.holds != "" {
				err = errors.Join(err, os.WriteFile(filepath.Join(dir, tc.holds), nil, 0o600))
			}
			if tc.old {
				long := time.Now().Add(-2 * makeTime)
				err = errors.Join(err, os.Chtimes(dir, long, long))
			}
			if err != nil {
				t.Fatal(err)
			}
			left, err := kind.Sweep(parent)
			_, stat := os.Stat(dir)
			if err != nil || errors.Is(stat, fs.ErrNotExist) != tc.gone || (len(left) == 1) != tc.told {
				t.Errorf("left %v, %v; stat %v", left, err, stat)
			}
		})
	}
}

func TestATemporaryFileHasNoName(t *testing.T) {
	dir := t.TempDir()
	f, err := NewFile(dir, "etcdkit-test-")
	if err != nil {
		t.Fatal(err)
	}
	if renamesOpenFiles {
		wantEmpty(t, dir)
	}
	if _, err := f.WriteString("data"); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	wantEmpty(t, dir)
}

// A lock whose file was removed is no lock: the next one would get it too.
func TestALockOnARemovedFileIsNotTaken(t *testing.T) {
	dir := open0(t, t.TempDir())
	first, err := OpenOrCreate(dir, "a.lock")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenOrCreate(dir, "a.lock"); !errors.Is(err, ErrLocked) {
		t.Errorf("a second lock: %v, want ErrLocked", err)
	}
	if err := first.Remove(); err != nil {
		t.Fatal(err)
	}
	again, err := OpenOrCreate(dir, "a.lock")
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Remove(); err != nil {
		t.Error(err)
	}
}

// deadFolder makes what a dead process leaves, and returns its path.
func deadFolder(t *testing.T, parent string) string {
	t.Helper()
	f, err := kind.New(parent)
	if err != nil {
		t.Fatal(err)
	}
	inside := filepath.Join(f.Path(), "member", "snap")
	if err := errors.Join(os.MkdirAll(inside, 0o700), os.WriteFile(filepath.Join(inside, "db"), []byte("x"), 0o600), f.lock.Close()); err != nil {
		t.Fatal(err)
	}
	return f.Path()
}

func sweep(t *testing.T, parent string) []Left {
	t.Helper()
	left, err := kind.Sweep(parent)
	if err != nil {
		t.Fatal(err)
	}
	return left
}

func open0(t *testing.T, path string) *dirfd.Dir {
	t.Helper()
	dir, err := dirfd.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dir.Close(); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("%s holds %v, %v; want nothing", dir, entries, err)
	}
}
