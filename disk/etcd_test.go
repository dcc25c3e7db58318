package disk_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/disk"
	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

// TestARunningEtcdIsNotDisturbed has a real etcd on the filesystem measured.
func TestARunningEtcdIsNotDisturbed(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("running etcds are found on Linux only")
	}
	etcdtest.Start(t, embedded.Options{Dir: t.TempDir()})
	opts := quick(t.TempDir())
	opts.Force = false
	if _, err := disk.Check(t.Context(), opts); !errors.Is(err, disk.ErrEtcdRunning) || !strings.Contains(hint.Of(err), "--gentle") {
		t.Fatalf("got %v, want a refusal that names --gentle", err)
	}
	opts.Gentle, opts.Rounds = true, 1
	start := time.Now()
	report, err := disk.Check(t.Context(), opts)
	if report == nil || err != nil && !errors.Is(err, disk.ErrCannotMeasure) { // a loaded disk passes the bound
		t.Fatal(err)
	}
	if per := time.Since(start) / time.Duration(report.Fsync.Count); per < 20*time.Millisecond {
		t.Errorf("a gentle write every %s, want at most 50 a second", per)
	}
	own := slices.IndexFunc(report.Neighbours, func(n disk.Neighbour) bool { return n.PID == os.Getpid() })
	if own < 0 || !strings.HasSuffix(report.Neighbours[own].Data, "/member/snap/db") && !strings.HasSuffix(report.Neighbours[own].Data, ".wal") {
		t.Errorf("neighbours %+v, want this process with its data", report.Neighbours)
	}
}

func TestReadMetricsOfARealEtcd(t *testing.T) {
	cluster := etcdtest.Start(t, embedded.Options{Dir: t.TempDir()})
	resp, err := http.Get(cluster.Endpoints()[0] + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	m, err := disk.ReadMetrics(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var counted uint64
	for _, b := range m.WALFsync.Buckets {
		counted += b.Count
	}
	if m.WALFsync.Buckets[0].ToSeconds != 0.001 || counted > m.WALFsync.Count || m.BackendCommit == nil {
		t.Errorf("got %+v, want buckets from 1 ms on that count to at most the total", m)
	}
}

func TestReadMetrics(t *testing.T) {
	page := func(buckets ...string) string {
		return "# TYPE etcd_disk_wal_fsync_duration_seconds histogram\n" +
			"etcd_disk_wal_fsync_duration_seconds_bucket" + strings.Join(buckets, "\netcd_disk_wal_fsync_duration_seconds_bucket") + "\n" +
			"etcd_disk_wal_fsync_duration_seconds_sum 0.4\netcd_disk_wal_fsync_duration_seconds_count 200\n"
	}
	for name, tc := range map[string]struct {
		page string
		want string
	}{
		"the p99 is in a bucket":      {page(`{le="0.001"} 150`, `{le="0.002"} 199`, `{le="+Inf"} 200`), "mean 2.00 ms, p99 between 1.00 ms and 2.00 ms, of 200"},
		"the p99 is in the first one": {page(`{le="0.001"} 199`, `{le="+Inf"} 200`), "mean 2.00 ms, p99 below 1.00 ms, of 200"},
		"the p99 is in the last one":  {page(`{le="0.001"} 100`, `{le="8"} 101`, `{le="+Inf"} 200`), "mean 2.00 ms, p99 above 8.00 s, of 200"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := disk.ReadMetrics(strings.NewReader(tc.page))
			if err != nil || m.WALFsync.String() != tc.want {
				t.Errorf("got %v, %v; want %s", m, err, tc.want)
			}
		})
	}
	for name, page := range map[string]string{"not etcd's": "up 1\n", "no metrics": "<html>", "nothing": "", "a counter of that name": "etcd_disk_wal_fsync_duration_seconds 1\n"} {
		t.Run(name, func(t *testing.T) {
			if m, err := disk.ReadMetrics(strings.NewReader(page)); err == nil {
				t.Errorf("got %+v, want an error", m)
			}
		})
	}
}

func FuzzReadMetrics(f *testing.F) {
	f.Add("etcd_disk_wal_fsync_duration_seconds_bucket{le=\"NaN\"} 1\n")
	f.Fuzz(func(t *testing.T, page string) {
		if m, err := disk.ReadMetrics(strings.NewReader(page)); err == nil && m.WALFsync.String() == "" {
			t.Error("no words for what was read")
		}
	})
}

func TestFlag(t *testing.T) {
	n := disk.Neighbour{Args: []string{"etcd", "--data-dir=/a b", "-name", "m1", "--initial-cluster", "x=y"}}
	for flag, want := range map[string]string{"data-dir": "/a b", "name": "m1", "initial-cluster": "x=y", "wal-dir": "", "data": ""} {
		if got := n.Flag(flag); got != want {
			t.Errorf("--%s is %q, want %q", flag, got, want)
		}
	}
}

// TestNoFioNeeded replays replicatedhq/kURL#4878: nothing but the
// package itself is needed, and nothing stays.
func TestNoFioNeeded(t *testing.T) {
	t.Setenv("PATH", filepath.Join(t.TempDir(), "empty"))
	opts := quick(t.TempDir())
	if _, err := disk.Check(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	wantEmpty(t, opts.Dir)
}
