//go:build bench

package commands_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/internal/testing/gendb"
	"github.com/etcdkit/etcdkit/internal/testing/reference"
)

// benchKeys is how many keys of 1 KiB the large keyspace has; BENCH_KEYS makes
// it another number.
const benchKeys = 1_000_000

// rival is one of two programs that do the same.
type rival struct{ name, path string }

// rivals are this binary as etcdctl, built by make bench, and upstream's.
func rivals(b *testing.B) (ours, theirs rival) {
	b.Helper()
	bin, err := filepath.Abs("../bin/etcdkit")
	if err != nil {
		b.Fatal(err)
	}
	link := filepath.Join(b.TempDir(), "etcdctl")
	if err := os.Symlink(bin, link); err != nil {
		b.Fatal(err)
	}
	return rival{"ours", link}, rival{"upstream", reference.Path(b, reference.Etcdctl)}
}

// cost is what a run took.
type cost struct {
	wall, cpu time.Duration
	peakMiB   float64
}

// measure runs a program to its end. Its output goes to a file, as with >.
func (r rival) measure(b *testing.B, stdin string, args ...string) cost {
	b.Helper()
	out, err := os.Create(filepath.Join(b.TempDir(), "out"))
	if err != nil {
		b.Fatal(err)
	}
	defer out.Close()
	cmd := exec.CommandContext(b.Context(), r.path, args...)
	cmd.Stdin, cmd.Stdout = strings.NewReader(stdin), out
	var errs strings.Builder
	cmd.Stderr = &errs
	began := time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	peak := peakOf(cmd.Process.Pid)
	if err := cmd.Wait(); err != nil {
		b.Fatalf("%s %v: %v\n%s", r.name, args, err, errs.String())
	}
	return cost{time.Since(began), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), <-peak}
}

// peakOf tells the most memory that a process had, in MiB, when it is gone. The
// rusage of a child does not: it counts what this process had when it forked.
func peakOf(pid int) <-chan float64 {
	result := make(chan float64, 1)
	go func() {
		peak := 0.0
		for {
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			_, after, ok := strings.Cut(string(status), "VmHWM:")
			if err != nil || !ok {
				result <- peak
				return
			}
			if kib, err := strconv.ParseFloat(strings.Fields(after)[0], 64); err == nil {
				peak = kib / 1024
			}
			time.Sleep(time.Millisecond)
		}
	}()
	return result
}

// compare runs both, one after the other so that they share the machine's mood,
// and reports the ratios.
func compare(b *testing.B, ours, theirs rival, stdin string, args ...string) {
	b.Helper()
	for range b.N {
		us, them := ours.measure(b, stdin, args...), theirs.measure(b, stdin, args...)
		b.ReportMetric(us.wall.Seconds()/them.wall.Seconds(), "wall/upstream")
		b.ReportMetric(us.cpu.Seconds()/them.cpu.Seconds(), "cpu/upstream")
		b.ReportMetric(us.peakMiB, "MiB")
		b.ReportMetric(them.peakMiB, "upstream-MiB")
		b.ReportMetric(us.wall.Seconds(), "s")
		b.ReportMetric(them.wall.Seconds(), "upstream-s")
	}
	b.ReportMetric(0, "ns/op")
}

// largeKeyspace starts a server of the program that holds benchKeys keys.
func largeKeyspace(b *testing.B, program reference.Program) *etcdtest.Servers {
	b.Helper()
	n := benchKeys
	if s := os.Getenv("BENCH_KEYS"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			b.Fatal(err)
		}
	}
	file := filepath.Join(b.TempDir(), "large.db")
	if err := gendb.Write(b.Context(), file, gendb.Options{Keys: n, ValueBytes: 1024}); err != nil {
		b.Fatal(err)
	}
	servers := etcdtest.NewServers(b, etcdtest.ServerOptions{Program: program, Flags: []string{"--quota-backend-bytes=8000000000"}})
	m := servers.Members[0]
	etcdutl := rival{"etcdutl", reference.Path(b, reference.Etcdutl)}
	etcdutl.measure(b, "", "snapshot", "restore", file, "--data-dir", m.DataDir, "--name", m.Name,
		"--initial-cluster", servers.InitialCluster(), "--initial-advertise-peer-urls", m.PeerURL)
	if program != reference.Etcd37 {
		version := strings.Join(strings.Split(program.Version(), ".")[:2], ".")
		etcdutl.measure(b, "", "migrate", "--data-dir", m.DataDir, "--target-version", strings.TrimPrefix(version, "v"))
	}
	servers.Start()
	return servers
}

// BenchmarkGet reads a million keys. On a 3.7 server they come by RangeStream,
// on a 3.6 server by pages.
func BenchmarkGet(b *testing.B) {
	ours, theirs := rivals(b)
	for _, program := range []reference.Program{reference.Etcd37, reference.Etcd36} {
		servers := largeKeyspace(b, program)
		for name, flags := range map[string][]string{"simple": nil, "json": {"-w", "json"}, "keys-only": {"--keys-only"}} {
			b.Run(fmt.Sprintf("%s/%s", program, name), func(b *testing.B) {
				args := append([]string{"--endpoints", servers.Members[0].Endpoint, "--command-timeout", "10m", "get", "--prefix", "/"}, flags...)
				compare(b, ours, theirs, "", args...)
			})
		}
		servers.Members[0].Stop()
	}
}

// BenchmarkSmall runs what scripts run often.
func BenchmarkSmall(b *testing.B) {
	ours, theirs := rivals(b)
	servers := etcdtest.StartServers(b, etcdtest.ServerOptions{})
	endpoint := servers.Members[0].Endpoint
	etcdtest.Fill(b, etcdtest.Client(b, endpoint), "k", benchEvents, 100)
	for name, args := range map[string][]string{
		"put":           {"put", "a", "1"},
		"get":           {"get", "a"},
		"snapshot save": {"snapshot", "save", filepath.Join(b.TempDir(), "snapshot.db")},
	} {
		b.Run(name, func(b *testing.B) {
			compare(b, ours, theirs, "", append([]string{"--endpoints", endpoint}, args...)...)
		})
	}
	b.Run("watch", func(b *testing.B) {
		for range b.N {
			us, them := ours.watch(b, endpoint), theirs.watch(b, endpoint)
			b.ReportMetric(us.wall.Seconds()/them.wall.Seconds(), "wall/upstream")
			b.ReportMetric(us.peakMiB, "MiB")
			b.ReportMetric(them.peakMiB, "upstream-MiB")
		}
		b.ReportMetric(0, "ns/op")
	})
}

// benchEvents is how many events the watch has to show.
const benchEvents = 10_000

// watch runs until all events have been shown.
func (r rival) watch(b *testing.B, endpoint string) cost {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), r.path, "--endpoints", endpoint, "watch", "--prefix", "k", "--rev", "1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for n := 0; n < 3*benchEvents; n++ { // the kind, the key, the value
		if !lines.Scan() {
			b.Fatalf("%s: the watch ended after %d lines: %v", r.name, n, lines.Err())
		}
	}
	took := time.Since(began)
	peak := peakOf(cmd.Process.Pid)
	time.Sleep(5 * time.Millisecond) // long enough to be read
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		b.Fatal(err)
	}
	_ = cmd.Wait() // ended by the signal
	return cost{wall: took, peakMiB: <-peak}
}
