package gendb_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/etcdkit/etcdkit/internal/testing/gendb"
	"github.com/etcdkit/etcdkit/internal/testing/reference"
)

func TestUpstreamTakesTheFileForASnapshot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "big.db")
	o := gendb.Options{Keys: 500, ValueBytes: 100, Rewrites: 2, SecretEvery: 10}
	if err := gendb.Write(t.Context(), path, o); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), reference.Path(t, reference.Etcdutl), "snapshot", "status", path, "-w", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var status struct {
		Revision int64
		TotalKey int
		Version  string
	}
	if err := json.Unmarshal(out, &status); err != nil {
		t.Fatal(err)
	}
	if status.Revision != 1501 || status.TotalKey != 500 || status.Version != "3.7.0" {
		t.Errorf("got %+v, want 500 keys, each written three times, of etcd 3.7.0", status)
	}
	dir := filepath.Join(t.TempDir(), "restored")
	if out, err := exec.CommandContext(t.Context(), reference.Path(t, reference.Etcdutl), "snapshot", "restore", path, "--data-dir", dir).CombinedOutput(); err != nil {
		t.Errorf("restore: %v\n%s", err, out)
	}
}
