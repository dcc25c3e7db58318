package disk_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/disk"
)

// quick is a measurement that takes no time on any disk.
func quick(dir string) disk.Options {
	return disk.Options{
		Dir: dir, Size: 120 * 2300, Rounds: 3, Duration: 30 * time.Second, SkipBandwidth: true, Force: true,
		Require: disk.Requirements{{Metric: disk.Max, Limit: 3600}},
	}
}

func TestCheckMeasuresEveryRound(t *testing.T) {
	opts := quick(t.TempDir())
	var told, total int64
	opts.Progress = func(done, of int64) { told, total = max(told, done), of }
	report, err := disk.Check(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Rounds) != 3 || report.Verdict != disk.OK || report.Fsync.Count != 120 {
		t.Errorf("%d rounds, verdict %q, %d syncs; want 3, ok, 120", len(report.Rounds), report.Verdict, report.Fsync.Count)
	}
	f := report.Fsync
	ordered := []float64{0, f.MinSeconds, f.P50Seconds, f.P90Seconds, f.P95Seconds, f.P99Seconds, f.P999Seconds, f.MaxSeconds}
	for i := 1; i < len(ordered); i++ {
		if ordered[i] < ordered[i-1] {
			t.Errorf("percentiles are not in order: %v", ordered)
		}
	}
	var counted int64
	for _, b := range report.Histogram {
		counted += b.Count
	}
	if counted != 3*120 {
		t.Errorf("the histogram counts %d syncs, want those of all rounds: 360", counted)
	}
	if told == 0 || total != 4*120*2300 {
		t.Errorf("progress told %d of %d bytes, want a total of warm-up and rounds", told, total)
	}
	if report.Filesystem.Type == "" || report.Filesystem.Type == "unknown" {
		t.Skipf("no filesystem facts on this system")
	}
}

func bulk(o *disk.Options, p disk.Pattern) {
	o.Pattern, o.Size, o.Rounds = p, 8<<20, 2
	o.Require = disk.Requirements{{Metric: disk.WriteRate, Limit: 1}}
}

func TestNothingStaysBehind(t *testing.T) {
	for name, change := range map[string]func(*disk.Options){
		"after a run":             func(*disk.Options) {},
		"with several writers":    func(o *disk.Options) { o.Jobs = 3 },
		"with O_DSYNC":            func(o *disk.Options) { o.ODSync = true },
		"with etcd's log":         func(o *disk.Options) { o.Pattern, o.Rounds = disk.WAL, 1 },
		"with batches":            func(o *disk.Options) { o.Pattern, o.Rounds, o.Jobs, o.Size = disk.WAL, 1, 10, 10*o.Size },
		"as a member":             func(o *disk.Options) { o.Pattern, o.Rounds = disk.Etcd, 1 },
		"as a busy member":        func(o *disk.Options) { o.Pattern, o.Rounds, o.Jobs, o.Size = disk.Etcd, 1, 4, 4*o.Size },
		"with bulk data":          func(o *disk.Options) { bulk(o, disk.Sequential) },
		"at random":               func(o *disk.Options) { bulk(o, disk.Random) },
		"with bulk data after it": func(o *disk.Options) { o.Rounds, o.SkipBandwidth = 1, false },
		"of the sizes in between": func(o *disk.Options) { o.Size += 17 },
	} {
		t.Run(name, func(t *testing.T) {
			opts := quick(t.TempDir())
			change(&opts)
			if _, err := disk.Check(t.Context(), opts); err != nil {
				t.Fatal(err)
			}
			wantEmpty(t, opts.Dir)
		})
	}
}

func TestAnInterruptedRunEndsWithItsCauseAndLeavesNothing(t *testing.T) {
	for _, pattern := range []disk.Pattern{disk.Fio, disk.WAL, disk.Etcd} {
		t.Run(string(pattern), func(t *testing.T) {
			opts := quick(t.TempDir())
			opts.Pattern, opts.Size = pattern, 1<<30
			stop := errors.New("interrupted by SIGTERM")
			ctx, cancel := context.WithCancelCause(t.Context())
			opts.Progress = func(int64, int64) { cancel(stop) }
			if _, err := disk.Check(ctx, opts); !errors.Is(err, stop) {
				t.Errorf("got %v, want the cause of the interruption", err)
			}
			wantEmpty(t, opts.Dir)
		})
	}
}

func TestWhatKilledRunsLeftIsSwept(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, ".etcdkit-disk-killed")
	foreign := filepath.Join(dir, ".etcdkit-disk-of-somebody-else")
	for _, path := range []string{filepath.Join(left, "etcdkit-disk-check"), filepath.Join(left, "0"), filepath.Join(foreign, "data")} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := disk.Check(t.Context(), quick(dir)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of a killed run is still there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(foreign, "data")); err != nil {
		t.Errorf("a folder without our marker was touched: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		opts disk.Options
		want error
		text string
	}{
		"a folder that does not exist":    {disk.Options{Dir: file + "-not"}, disk.ErrCannotMeasure, "no such file"},
		"a file":                          {disk.Options{Dir: file}, disk.ErrCannotMeasure, "not a folder"},
		"a negative size":                 {disk.Options{Dir: "/", Size: -1}, disk.ErrOptions, "size"},
		"a block larger than the size":    {disk.Options{Dir: "/", Size: 10, Block: 11}, disk.ErrOptions, "does not fit"},
		"too many writers":                {disk.Options{Dir: "/", Jobs: 1 << 20}, disk.ErrOptions, "jobs"},
		"a put that etcd does not take":   {disk.Options{Dir: "/", Pattern: disk.Etcd, Block: 2 << 20}, disk.ErrOptions, "etcd takes puts"},
		"an unknown pattern":              {disk.Options{Dir: "/", Pattern: "vinyl"}, disk.ErrOptions, "vinyl"},
		"too few syncs to judge a p99 by": {disk.Options{Dir: t.TempDir(), Size: 10 * 2300, SkipBandwidth: true, Force: true}, disk.ErrCannotMeasure, "10 syncs are too few"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := disk.Check(t.Context(), tc.opts)
			if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("got %v, want %v with %q", err, tc.want, tc.text)
			}
		})
	}
}

// TestAShortRoundIsCut also shows that a slow disk cannot make a run endless.
func TestAShortRoundIsCut(t *testing.T) {
	opts := quick(t.TempDir())
	opts.Size, opts.Rounds, opts.Duration = 1<<30, 1, 300*time.Millisecond
	report, err := disk.Check(t.Context(), opts)
	if err != nil && !errors.Is(err, disk.ErrCannotMeasure) { // a very slow disk syncs too few times
		t.Fatal(err)
	}
	if r := report.Rounds[0]; r.Complete || r.TookSeconds < 0.3 {
		t.Errorf("complete %v after %.2f s, want a round that was cut after 0.3 s", r.Complete, r.TookSeconds)
	}
}

// TestJSONContract pins the names that scripts rely on.
func TestJSONContract(t *testing.T) {
	report, err := disk.Check(t.Context(), quick(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"path", "filesystem", "fsync", "iops", "bytesPerSecond", "rounds", "verdict", "class", "histogram"} {
		if _, ok := got[name]; !ok {
			t.Errorf("no %q in %s", name, b)
		}
	}
	fsync := got["fsync"].(map[string]any)
	for _, name := range []string{"p50Seconds", "p90Seconds", "p99Seconds", "p999Seconds", "maxSeconds", "meanSeconds"} {
		if v, ok := fsync[name].(float64); !ok || v <= 0 {
			t.Errorf("fsync.%s is %v, want a time", name, fsync[name])
		}
	}
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
