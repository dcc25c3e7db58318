package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// systemState is where a process without a home keeps its state, as under
// systemd or in a container, and one whose home does not exist.
const systemState = "/var/lib/etcdkit"

// StateDir returns where etcdkit keeps what must outlive a run: its journal, its
// locks and the files of its runs. The folder may not exist yet.
func (e *Env) StateDir() string {
	if dir := e.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "etcdkit")
	}
	home := e.Getenv("HOME")
	if home == "" {
		home = e.Getenv("USERPROFILE")
	}
	if home == "" || home == "/" {
		return systemState
	}
	if _, err := os.Stat(home); errors.Is(err, fs.ErrNotExist) {
		return systemState // a home is made by whoever makes the user
	}
	return filepath.Join(home, ".local", "state", "etcdkit")
}
