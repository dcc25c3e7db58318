package commands

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcdkit/etcdkit/internal/hint"
)

// Without a folder the usual one is measured, if there is one; tested here,
// because a test must not measure the one that a machine may have.
func TestDiskCheckWithoutAFolder(t *testing.T) {
	dir := t.TempDir()
	if got, err := existingDir(dir); got != dir || err != nil {
		t.Errorf("got %q, %v; want %s", got, err, dir)
	}
	_, err := existingDir(filepath.Join(dir, "none"))
	if err == nil || !strings.Contains(err.Error(), "no folder given") || !strings.Contains(hint.Of(err), "name the folder") {
		t.Errorf("a folder that is not there: %v, hint %q", err, hint.Of(err))
	}
}
