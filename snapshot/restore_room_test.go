package snapshot_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/etcdkit/etcdkit/snapshot"
)

func TestARestoreThatCannotFitIsRefusedAndLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "m1.etcd")
	src := sourceOf(kubernetes(t))
	src.Size = 1 << 60
	if _, err := snapshot.Restore(t.Context(), src, single(dir)); !errors.Is(err, snapshot.ErrNoSpace) {
		t.Errorf("got %v, want ErrNoSpace", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("stat of the target: %v, want it gone", err)
	}
}
