package snapshot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/mvccdb"
	"github.com/etcdkit/etcdkit/internal/regular"
)

// refuseInUse refuses a data directory that a running etcd uses.
func refuseInUse(dir string) error {
	f, err := regular.Open(filepath.Join(dir, memberDir, "snap", "db"))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil // without a database nobody runs on it
	}
	if err != nil {
		return fmt.Errorf("look for a running etcd: %w", err)
	}
	defer f.Close()
	if running, _ := mvccdb.IsHeldAlone(f); running {
		return hint.With(fmt.Errorf("%w: %s", ErrInUse, dir), "stop that etcd first")
	}
	return nil
}
