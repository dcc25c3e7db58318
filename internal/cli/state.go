package cli

import (
	"errors"
	"path/filepath"
)

// StateDir returns where etcdkit keeps what must outlive a run: its journal and
// its locks. The folder may not exist yet.
func (e *Env) StateDir() (string, error) {
	if dir := e.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "etcdkit"), nil
	}
	home := e.Getenv("HOME")
	if home == "" {
		home = e.Getenv("USERPROFILE")
	}
	if home == "" {
		return "", errors.New("find the state folder: neither XDG_STATE_HOME nor HOME is set")
	}
	return filepath.Join(home, ".local", "state", "etcdkit"), nil
}
