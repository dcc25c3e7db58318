package snapshot

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/store"
)

func TestTheFilesOfRuns(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		content string
		old     bool
		locked  bool
		ended   bool
		living  bool
		gone    bool
	}{
		"a dead run":                        {`{"repository":"r/"}`, false, false, true, false, false},
		"a living one":                      {"", false, true, false, true, false},
		"another repository's":              {`{"repository":"s/"}`, true, false, false, false, false},
		"killed before it wrote a word":     {"", true, false, false, false, true},
		"one that may be about to write it": {"", false, false, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			runs := Runs{Dir: t.TempDir()}
			file := filepath.Join(runs.Dir, "00112233"+runSuffix)
			if !tc.locked {
				if err := os.WriteFile(file, []byte(tc.content), 0o600); err != nil {
					t.Fatal(err)
				}
			} else {
				run, err := runs.start("00112233", runFile{Repository: "r/"})
				if err != nil {
					t.Fatal(err)
				}
				defer run.end()
			}
			if tc.old {
				long := time.Now().Add(-48 * time.Hour)
				if err := os.Chtimes(file, long, long); err != nil {
					t.Fatal(err)
				}
			}
			ended, living := runs.read("r/")
			for _, d := range ended {
				d.run.abandon()
			}
			_, err := os.Stat(file)
			if (ended["00112233"] != nil) != tc.ended || living["00112233"] != tc.living || errors.Is(err, fs.ErrNotExist) != tc.gone {
				t.Errorf("ended %v, living %v, stat %v", ended, living, err)
			}
		})
	}
}

// A later run in another folder knows the same repository again, and takes no
// other one for it.
func TestAFolderIsNamedInTheSameWayFromEverywhere(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	here, there := placeOf(store.NewFolder("repo/")), placeOf(store.NewFolder(filepath.Join(dir, "repo")))
	if here != there || !strings.HasPrefix(here, dir) {
		t.Errorf("named %s and %s", here, there)
	}
}
