//go:build bench && linux

package disk

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// pairs is how often fio and this package measure in turn.
const pairs = 11

// BenchmarkAgainstFio compares with fio on the folder that DISK_BENCH_DIR
// names, or a temporary one.
func BenchmarkAgainstFio(b *testing.B) {
	fio := findFio(b)
	dir := benchDir(b)
	fs, err := StatFilesystem(dir)
	if err != nil {
		b.Fatal(err)
	}
	var theirs, ours []Round
	for i := range pairs + 1 {
		both := []func(){
			func() { theirs = append(theirs, fioRound(b, fio, dir)) },
			func() { ours = append(ours, ownRound(b, dir)) },
		}
		if i%2 == 1 { // neither always comes first
			slices.Reverse(both)
		}
		both[0]()
		both[1]()
	}
	theirs, ours = theirs[1:], ours[1:] // the first pair warms up
	fmt.Printf("\nfio and disk check in turn, %d pairs, %s on %s\n\n", pairs, fs.Type, fs.Device)
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "median of\tfio\tours\tdifference\tallowed\tfio's interquartile range\t")
	for _, m := range []struct {
		metric Metric
		of     func(Round) float64
	}{
		{P50, func(r Round) float64 { return r.Fsync.P50Seconds }},
		{P90, func(r Round) float64 { return r.Fsync.P90Seconds }},
		{P99, func(r Round) float64 { return r.Fsync.P99Seconds }},
		{IOPS, func(r Round) float64 { return r.IOPS }},
	} {
		low, their, high := quartiles(theirs, m.of)
		_, own, _ := quartiles(ours, m.of)
		allowed := max(0.10*their, high-low)
		word := "ok"
		if math.Abs(own-their) > allowed {
			word = "TOO FAR"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%+.1f %%\t%.1f %%\t%s to %s\t%s\n", m.metric, m.metric.Format(their), m.metric.Format(own),
			100*(own-their)/their, 100*allowed/their, m.metric.Format(low), m.metric.Format(high), word)
		b.ReportMetric(own/their, string(m.metric)+"/fio's")
	}
	w.Flush()
}

// findFio returns the path of fio, which it installs where that is one command.
func findFio(b *testing.B) string {
	b.Helper()
	if path, err := exec.LookPath("fio"); err == nil {
		return path
	}
	if os.Geteuid() == 0 {
		_ = exec.CommandContext(b.Context(), "apt-get", "install", "-y", "-qq", "fio").Run() // the next look tells
	}
	path, err := exec.LookPath("fio")
	if err != nil {
		fmt.Println("\nSKIPPED the comparison with fio, which is not installed: apt-get install fio")
		b.Skip("no fio")
	}
	return path
}

func benchDir(b *testing.B) string {
	b.Helper()
	if dir := os.Getenv("DISK_BENCH_DIR"); dir != "" {
		return dir
	}
	return b.TempDir()
}

// roundVariable makes the test binary measure one round in the folder that it
// names, so that every round of ours is a new process, as every one of fio's is.
const roundVariable = "DISK_BENCH_ROUND"

// loadVariable makes it put to an etcd: "ENDPOINT CLIENTS TIME".
const loadVariable = "DISK_BENCH_LOAD"

func TestMain(m *testing.M) {
	var err error
	switch dir, load := os.Getenv(roundVariable), os.Getenv(loadVariable); {
	case dir != "":
		err = printRound(dir)
	case load != "":
		err = printLoad(load)
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// printLoad puts as loadVariable says, and prints how often.
func printLoad(what string) error {
	var endpoint, length string
	var clients int
	if _, err := fmt.Sscan(what, &endpoint, &clients, &length); err != nil {
		return err
	}
	d, err := time.ParseDuration(length)
	if err != nil {
		return err
	}
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, 10); err != nil {
		return err
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}})
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	value := strings.Repeat("v", 2200) // with key and framing, a record of 2300 bytes
	var puts atomic.Int64
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			for ctx.Err() == nil {
				if _, err := client.Put(ctx, fmt.Sprintf("key-%d-%d", i, puts.Load()%1000), value); err == nil {
					puts.Add(1)
				}
			}
		})
	}
	all.Wait()
	fmt.Println(puts.Load())
	return nil
}

// printRound measures one round as fio does: no warm-up, no limit.
func printRound(dir string) error {
	fs, err := StatFilesystem(dir)
	if err != nil {
		return err
	}
	opts, err := Options{Dir: dir}.complete()
	if err != nil {
		return err
	}
	p := pace{writes: opts.writes(), longest: time.Hour, tell: func(int64) {}}
	got, _, err := newReport(opts, fs).round(context.Background(), opts, p)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(got)
}

func ownRound(b *testing.B, dir string) Round {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), roundVariable+"="+dir)
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("a round of ours: %v", err)
	}
	var got Round
	if err := json.Unmarshal(out, &got); err != nil {
		b.Fatal(err)
	}
	return got
}

func fioRound(b *testing.B, fio, dir string) Round {
	b.Helper()
	out, err := exec.CommandContext(b.Context(), fio, "--name=bench", "--rw=write", "--ioengine=sync", "--fdatasync=1",
		"--bs=2300", "--size=22m", "--directory="+dir, "--unlink=1", "--output-format=json").Output()
	if err != nil {
		b.Fatalf("fio: %v", err)
	}
	var got struct {
		Jobs []struct {
			Write struct {
				IOPS float64 `json:"iops"`
			} `json:"write"`
			Sync struct {
				Latency struct {
					Percentile map[string]float64 `json:"percentile"`
				} `json:"lat_ns"`
			} `json:"sync"`
		} `json:"jobs"`
	}
	if err := json.Unmarshal(out, &got); err != nil {
		b.Fatalf("fio's answer: %v", err)
	}
	at := func(p float64) float64 {
		return got.Jobs[0].Sync.Latency.Percentile[strconv.FormatFloat(p, 'f', 6, 64)] / 1e9
	}
	return Round{IOPS: got.Jobs[0].Write.IOPS, Fsync: Latency{P50Seconds: at(50), P90Seconds: at(90), P99Seconds: at(99)}}
}

// quartiles returns the quartiles and the median of a number of the rounds.
func quartiles(rounds []Round, of func(Round) float64) (low, middle, high float64) {
	var all []float64
	for _, r := range rounds {
		all = append(all, of(r))
	}
	slices.Sort(all)
	at := func(q float64) float64 {
		pos := q * float64(len(all)-1)
		i := int(pos)
		if i+1 == len(all) {
			return all[i]
		}
		return all[i] + (pos-float64(i))*(all[i+1]-all[i])
	}
	return at(0.25), at(0.5), at(0.75)
}
