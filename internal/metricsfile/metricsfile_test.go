package metricsfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/etcdkit/etcdkit/internal/metricsfile"
)

func TestWriteReplacesTheFileAndKeepsTheLastSuccess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "etcdkit.prom")
	up := func(v float64) metricsfile.Gauge { return metricsfile.One("x_up", "Whether it worked.", v) }
	last := metricsfile.One("x_last_success", "When it worked last.", 42)
	objects := metricsfile.Gauge{Name: "x_objects", Help: "Objects.", Samples: []metricsfile.Sample{{Labels: map[string]string{"state": "plain", "place": "live"}, Value: 3}}}
	if err := metricsfile.Write(path, []metricsfile.Gauge{up(1), last, objects}, "x_last_success"); err != nil {
		t.Fatal(err)
	}
	if err := metricsfile.Write(path, []metricsfile.Gauge{up(0)}, "x_last_success"); err != nil {
		t.Fatal(err)
	}
	want := "# HELP x_last_success When it worked last.\n# TYPE x_last_success gauge\nx_last_success 42\n" +
		"# HELP x_up Whether it worked.\n# TYPE x_up gauge\nx_up 0\n"
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%v, got\n%s\nwant\n%s", err, got, want)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, left behind: %v", err, entries)
	}
}

func TestAFolderThatIsNotThereIsNamed(t *testing.T) {
	if err := metricsfile.Write(filepath.Join(t.TempDir(), "none", "x.prom"), nil); err == nil {
		t.Error("no error")
	}
}
