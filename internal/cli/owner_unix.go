//go:build unix

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// WritableByOthers says who besides root and this user can change the file at
// path, by its own rights or those of its folder. It returns "" if nobody can,
// or if that is not known.
func WritableByOthers(path string) string {
	for _, p := range []string{path, filepath.Dir(path)} {
		info, err := os.Stat(p)
		if err != nil {
			continue
		}
		what := "it"
		if p != path {
			what = "its folder"
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		sticky := info.IsDir() && info.Mode()&os.ModeSticky != 0 // others cannot replace our file there
		switch {
		case ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid():
			return fmt.Sprintf("%s belongs to user %d", what, stat.Uid)
		case info.Mode()&0o022 != 0 && !sticky:
			return fmt.Sprintf("%s can be written by other users (mode %04o)", what, info.Mode().Perm())
		}
	}
	return ""
}
