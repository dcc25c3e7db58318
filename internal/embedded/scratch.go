package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
)

// scratchPattern names the temporary folders of clusters. Each holds a lock
// file for as long as its process lives, so that the folder of a killed one
// can be told from one in use.
const (
	scratchPattern = "etcdkit-cluster-*"
	scratchLock    = "in-use"
)

type scratch struct {
	dir  string
	lock *fileutil.LockedFile
}

// newScratch creates a temporary folder, after removing those that killed
// processes of this user left behind.
func newScratch() (*scratch, error) {
	sweepScratch()
	dir, err := os.MkdirTemp("", scratchPattern)
	if err != nil {
		return nil, err
	}
	lock, err := fileutil.TryLockFile(filepath.Join(dir, scratchLock), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), os.RemoveAll(dir))
	}
	return &scratch{dir: dir, lock: lock}, nil
}

func (s *scratch) remove() error {
	err := os.RemoveAll(s.dir)
	return errors.Join(err, s.lock.Close())
}

// sweepScratch removes the folders whose process is gone. One whose lock file
// does not exist yet is just being made, and stays.
func sweepScratch() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), scratchPattern))
	for _, dir := range dirs {
		lock, err := fileutil.TryLockFile(filepath.Join(dir, scratchLock), os.O_RDWR, 0o600)
		if err != nil {
			continue
		}
		_ = os.RemoveAll(dir)
		_ = lock.Close()
	}
}
