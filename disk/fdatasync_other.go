//go:build !linux

package disk

import (
	"os"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
)

// bareFdatasync is what this system has in the place of fdatasync.
func bareFdatasync(f *os.File) error { return fileutil.Fdatasync(f) }
