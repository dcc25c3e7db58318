package commands_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// The table of docs/architecture.md has every folder with code, or one above
// it, and no folder that is not there.
func TestTheArchitectureIsTheTreeItself(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	repository := os.DirFS("..")
	told := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*?`) \\|").FindAllStringSubmatch(string(raw), -1) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			told[name[1]] = true
			if _, err := fs.Stat(repository, name[1]); err != nil {
				t.Errorf("it has %s: %v", name[1], err)
			}
		}
	}
	err = fs.WalkDir(repository, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && name != "." || entry.Name() == "testdata"):
			return fs.SkipDir
		case path.Ext(name) != ".go":
			return nil
		}
		for dir := path.Dir(name); !told[dir]; dir = path.Dir(dir) {
			if dir == "." {
				t.Errorf("it does not have %s", path.Dir(name))
				break
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
