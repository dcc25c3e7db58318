package parity

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// leftovers returns the files in the side's working directory with their modes,
// and says which of those that the lines made are empty.
func (s *side) leftovers() (map[string]string, error) {
	found := map[string]string{}
	err := filepath.WalkDir(s.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == s.dir {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(s.dir, path)
		if err != nil {
			return err
		}
		found[name] = info.Mode().String()
		if info.Mode().IsRegular() && info.Size() == 0 && !s.prepared[name] {
			found[name] += " empty"
		}
		return nil
	})
	return found, err
}

// compareLeftovers fails the test where the two sides left different files
// behind. Two differences are wanted: a restore of ours that fails leaves no
// folder, and a file with data is for its owner alone.
func compareLeftovers(t *testing.T, sides [2]*side) {
	t.Helper()
	var files [2]map[string]string
	for i, s := range sides {
		var err error
		if files[i], err = s.leftovers(); err != nil {
			t.Error(err)
			return
		}
	}
	upstream, ours := files[0], files[1]
	for name, mode := range upstream {
		top, _, _ := strings.Cut(name, string(filepath.Separator))
		switch got, there := ours[name]; {
		case !there && ours[top] == "" && strings.HasPrefix(upstream[top], "d"): // left by a restore that failed
		case !there:
			t.Errorf("upstream left %s %s behind, ours did not", mode, name)
		case got != mode && !ownerOnly(mode, got):
			t.Errorf("upstream left %s with %s, ours with %s", name, mode, got)
		}
	}
	for name, mode := range ours {
		if upstream[name] == "" {
			t.Errorf("ours left %s %s behind, upstream did not", mode, name)
		}
	}
}

// ownerOnly reports whether ours is upstream's mode without the rights of others.
func ownerOnly(upstream, ours string) bool {
	const owner = len("-rw-")
	return len(upstream) > owner && strings.HasPrefix(ours, upstream[:owner]) && ours[owner:] == strings.Repeat("-", len("r--r--"))+trailing(upstream)
}

func trailing(mode string) string {
	if _, empty, ok := strings.Cut(mode, " "); ok {
		return fmt.Sprint(" ", empty)
	}
	return ""
}
