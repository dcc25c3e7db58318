package freespace_test

import (
	"path/filepath"
	"testing"

	"github.com/etcdkit/etcdkit/internal/freespace"
)

func TestAFolderHasRoomAndOneThatIsNotThereHasNone(t *testing.T) {
	dir := t.TempDir()
	if free, err := freespace.Of(dir); err != nil || free == 0 {
		t.Errorf("%d bytes, %v; want some", free, err)
	}
	if free, err := freespace.Of(filepath.Join(dir, "none")); err == nil || free != 0 {
		t.Errorf("where there is no folder: %d bytes, %v; want an error", free, err)
	}
}
