package embedded_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/etcdkit/etcdkit/internal/embedded"
)

func TestAMemberThatCannotGoOnIsAnErrorAndNotTheEndOfTheProcess(t *testing.T) {
	dir := t.TempDir()
	// etcd ends its process over a database that it cannot open.
	_, err := embedded.Start(t.Context(), embedded.Options{Dir: dir, Configure: func(_ int, cfg *embed.Config) {
		db := filepath.Join(cfg.Dir, "member", "snap", "db")
		if err := errors.Join(os.MkdirAll(filepath.Dir(db), 0o700), os.WriteFile(db, []byte("not a database"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}})
	if err == nil {
		t.Error("a member started on a file that is no database")
	}
}
