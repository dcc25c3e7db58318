package commands

import (
	"bytes"
	"strings"
	"testing"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/disk"
	"github.com/etcdkit/etcdkit/internal/cli"
)

func TestNOCOLORIsHeeded(t *testing.T) {
	t.Parallel()
	report := &disk.Report{Fsync: disk.Latency{Count: 5}, Histogram: []disk.Bucket{{FromSeconds: 0.02, ToSeconds: 0.03, Count: 5}}}
	for name, tc := range map[string]struct {
		terminal bool
		environ  []string
		colored  bool
	}{
		"a terminal":             {true, nil, true},
		"a terminal, NO_COLOR=1": {true, []string{"NO_COLOR=1"}, false},
		"a pipe":                 {false, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			a := app.New("etcdkit", cli.Native, &cli.Env{Out: &out, OutTTY: tc.terminal, Environ: tc.environ})
			if err := a.Print(diskResult(a, report)); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), "█") {
				t.Fatalf("no histogram in %q", out.String())
			}
			if got := strings.Contains(out.String(), "\x1b["); got != tc.colored {
				t.Errorf("coloured: %v, want %v: %q", got, tc.colored, out.String())
			}
		})
	}
}
