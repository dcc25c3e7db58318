//go:build bench && linux

package disk_test

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/etcdkit/etcdkit/disk"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

const (
	// turns is how often upstream's etcd and this package write in turn.
	turns    = 5
	turnTime = 8 * time.Second
)

// BenchmarkPredictsEtcd asks whether pattern etcd tells beforehand what
// upstream's etcd then measures itself in the same folder.
func BenchmarkPredictsEtcd(b *testing.B) {
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "\nclients\tputs/s\tputs in a sync\tetcd's mean\tours\tfactor\tetcd's p99\tours\t")
	for _, clients := range []int{1, 64} {
		predict(b, w, clients)
	}
	fmt.Printf("\nwal_fsync_duration_seconds of upstream's etcd and disk check --pattern etcd, median of %d turns of %s\n", turns, turnTime)
	w.Flush()
}

func predict(b *testing.B, w *tabwriter.Writer, clients int) {
	server := etcdtest.StartServers(b, etcdtest.ServerOptions{Fsync: true}).Members[0]
	var means, theirP99, ourMeans, ourP99, rates, batches []float64
	for range turns {
		before := walFsync(b, server.Endpoint)
		puts := load(b, server.Endpoint, clients)
		d := difference(before, walFsync(b, server.Endpoint))
		means, theirP99 = append(means, d.mean), append(theirP99, d.p99)
		rates, batches = append(rates, float64(puts)/turnTime.Seconds()), append(batches, float64(puts)/d.count)

		report, err := disk.Check(b.Context(), disk.Options{
			Dir: b.TempDir(), Pattern: disk.Etcd, Jobs: clients, Size: 1 << 30, Rounds: 1, Duration: turnTime,
			Force: true, SkipBandwidth: true, Require: disk.Requirements{{Metric: disk.Max, Limit: 3600}},
		})
		if err != nil {
			b.Fatal(err)
		}
		ourMeans, ourP99 = append(ourMeans, report.Fsync.MeanSeconds), append(ourP99, report.Fsync.P99Seconds)
	}
	server.Stop()
	mean, own, p99, ownP99 := middle(means), middle(ourMeans), middle(theirP99), middle(ourP99)
	word := "ok"
	if own > 1.5*mean || mean > 1.5*own || math.Abs(float64(bucketOf(ownP99)-bucketOf(p99))) > 1 {
		word = "TOO FAR"
	}
	fmt.Fprintf(w, "%d\t%.0f\t%.1f\t%s\t%s\t%.2f\tup to %s\t%s\t%s\n", clients, middle(rates), middle(batches),
		disk.FormatSeconds(mean), disk.FormatSeconds(own), own/mean, disk.FormatSeconds(p99), disk.FormatSeconds(ownP99), word)
	b.ReportMetric(own/mean, fmt.Sprintf("mean/etcd's-%d", clients))
}

// load puts with so many clients for one turn, and returns how often. It does
// so in a process that gives way to the server, for clients are usually on
// other machines and take nothing of its processors.
func load(b *testing.B, endpoint string, clients int) int64 {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("DISK_BENCH_LOAD=%s %d %s", endpoint, clients, turnTime))
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("put: %v", err)
	}
	puts, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil || puts == 0 {
		b.Fatalf("put %q times: %v", out, err)
	}
	return puts
}

func walFsync(b *testing.B, endpoint string) *disk.Durations {
	b.Helper()
	resp, err := http.Get(endpoint + "/metrics")
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	m, err := disk.ReadMetrics(resp.Body)
	if err != nil {
		b.Fatal(err)
	}
	return m.WALFsync
}

type observed struct{ count, mean, p99 float64 } // p99 is the upper bound of its bucket

func difference(before, after *disk.Durations) observed {
	count := float64(after.Count - before.Count)
	sum := after.MeanSeconds*float64(after.Count) - before.MeanSeconds*float64(before.Count)
	o := observed{count: count, mean: sum / count}
	below := 0.0
	for i, bucket := range after.Buckets {
		below += float64(bucket.Count - before.Buckets[i].Count)
		if below >= 0.99*count {
			o.p99 = bucket.ToSeconds
			break
		}
	}
	return o
}

// bucketOf numbers the buckets of etcd's histogram, powers of two from 1 ms.
func bucketOf(seconds float64) int {
	return max(0, int(math.Ceil(math.Log2(seconds/0.001)-1e-9)))
}

func middle(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}
