package wholefile_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/etcdkit/etcdkit/internal/wholefile"
)

// names returns what is in a folder.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestWriteReplacesAFileAndLeavesNothingBeside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, text := range []string{"first", "second"} {
		if err := wholefile.Write(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("got %q, %v; want %q", got, err, text)
		}
	}
	if got := names(t, filepath.Dir(path)); !slices.Equal(got, []string{"f"}) {
		t.Errorf("there is %q", got)
	}
}

func TestAFileThatIsNotKeptIsGone(t *testing.T) {
	for name, end := range map[string]func(*wholefile.File) error{
		"discarded":                       func(f *wholefile.File) error { return f.Discard() },
		"in the place of a folder":        func(f *wholefile.File) error { return ignore(f.Keep()) },
		"ended before it could be synced": func(f *wholefile.File) error { _ = f.Close(); return ignore(f.Keep()) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "taken")
			if err := os.MkdirAll(filepath.Join(path, "by"), 0o700); err != nil {
				t.Fatal(err)
			}
			f, err := wholefile.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := end(f); err != nil {
				t.Error(err)
			}
			if got := names(t, dir); !slices.Equal(got, []string{"taken"}) {
				t.Errorf("there is %q", got)
			}
		})
	}
}

// ignore turns the error that must come into none, and none into one.
func ignore(err error) error {
	if err == nil {
		return os.ErrExist
	}
	return nil
}

func TestAFolderThatIsNotThereIsAnError(t *testing.T) {
	if err := wholefile.Write(filepath.Join(t.TempDir(), "none", "f"), nil, 0o600); err == nil {
		t.Error("no error")
	}
}
