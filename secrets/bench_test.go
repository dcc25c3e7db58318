//go:build bench

package secrets_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/internal/testing/gendb"
	"github.com/etcdkit/etcdkit/internal/testing/reference"
)

// sampled is how many Secrets are read one by one; the time for all of them
// is computed from that.
const sampled = 100

// BenchmarkScan holds a scan of live keys, history and free pages of a 1.4 GB
// snapshot against SHA-256 over the same file (x-sha256, wanted: 1.5 at most),
// and against reading it through a served copy with etcdctl (x-etcdctl,
// wanted: 0.1 at most). peak-MiB is the memory of the scan where the
// system tells it, and peak-MiB-of-all that of a scan which looks at every
// object and finds nine of ten in clear (wanted: below 200).
func BenchmarkScan(b *testing.B) {
	dir := b.TempDir()
	db := filepath.Join(dir, "big.db")
	if err := gendb.Write(b.Context(), db, gendb.Options{Keys: 1_000_000, ValueBytes: 1024, SecretEvery: 10}); err != nil {
		b.Fatal(err)
	}
	kit := filepath.Join(dir, "etcdkit")
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", kit, "../cmd/etcdkit").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	var scans, sums []time.Duration
	memory := int64(0)
	for b.Loop() {
		sums = append(sums, sha256Of(b, db))
		took, peak := scanWith(b, kit, db)
		scans, memory = append(scans, took), max(memory, peak)
	}
	scan, sum := median(scans), median(sums)
	b.ReportMetric(scan.Seconds(), "scan-s")
	b.ReportMetric(sum.Seconds(), "sha256-s")
	b.ReportMetric(scan.Seconds()/sum.Seconds(), "x-sha256")
	b.ReportMetric(float64(memory>>10), "peak-MiB")
	everything := filepath.Join(dir, "everything.yaml")
	if err := os.WriteFile(everything, []byte(everythingConfig), 0o600); err != nil {
		b.Fatal(err)
	}
	_, memory = scanWith(b, kit, db, "--encryption-config", everything, "-w", "json")
	b.ReportMetric(float64(memory>>10), "peak-MiB-of-all")
	served := throughEtcdctl(b, db)
	b.ReportMetric(served.Seconds(), "etcdctl-s")
	b.ReportMetric(scan.Seconds()/served.Seconds(), "x-etcdctl")
}

// everythingConfig wants every object encrypted.
const everythingConfig = `apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: ["*.*"]
  providers:
  - aescbc: {keys: [{name: key1, secret: AAECAwQFBgcICQoLDA0ODw==}]}
`

// scanWith runs the binary and returns how long it took, and its peak memory
// in KiB. The kernel's own account of an ended process counts what its parent
// had before, so the running one is looked at.
func scanWith(b *testing.B, kit string, args ...string) (took time.Duration, peak int64) {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), kit, append([]string{"secrets", "scan"}, args...)...)
	var out bytes.Buffer
	cmd.Stdout = &out
	start := time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	ended := make(chan struct{})
	watched := make(chan int64)
	go func() {
		most := int64(0)
		for ticker := time.NewTicker(10 * time.Millisecond); ; {
			select {
			case <-ended:
				watched <- most
				return
			case <-ticker.C:
				most = max(most, peakOf(cmd.Process.Pid))
			}
		}
	}()
	err := cmd.Wait()
	took = time.Since(start)
	close(ended)
	if cmd.ProcessState.ExitCode() != 3 {
		b.Fatalf("%v\n%s", err, out.String())
	}
	return took, <-watched
}

// peakOf reads the peak memory of a process, in KiB; 0 where it is not told.
func peakOf(pid int) int64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	var peak int64
	if i := bytes.Index(status, []byte("VmHWM:")); i >= 0 {
		_, _ = fmt.Sscan(string(status[i+len("VmHWM:"):]), &peak)
	}
	return peak
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func sha256Of(b *testing.B, path string) time.Duration {
	b.Helper()
	start := time.Now()
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if _, err := io.Copy(sha256.New(), f); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

// throughEtcdctl serves the snapshot and measures how long it takes to list
// its keys and to get each Secret.
func throughEtcdctl(b *testing.B, db string) time.Duration {
	b.Helper()
	servers := etcdtest.NewServers(b, etcdtest.ServerOptions{})
	run := func(ctx context.Context, p reference.Program, args ...string) string {
		b.Helper()
		cmd := exec.CommandContext(ctx, reference.Path(b, p), args...)
		out, err := cmd.Output()
		if err != nil {
			b.Fatalf("%s %v: %v", p.Name(), args, err)
		}
		return string(out)
	}
	m := servers.Members[0]
	run(b.Context(), reference.Etcdutl, "snapshot", "restore", db, "--data-dir", m.DataDir, "--name", m.Name,
		"--initial-cluster", servers.InitialCluster(), "--initial-advertise-peer-urls", m.PeerURL)
	servers.Start()
	endpoint := "--endpoints=" + servers.Endpoints()[0]
	start := time.Now()
	keys := strings.Fields(run(b.Context(), reference.Etcdctl, endpoint, "--command-timeout=10m", "get", "/registry/", "--prefix", "--keys-only"))
	listed := time.Since(start)
	secretKeys := slices.DeleteFunc(keys, func(k string) bool { return !strings.HasPrefix(k, "/registry/secrets/") })
	start = time.Now()
	for _, key := range secretKeys[:sampled] {
		run(b.Context(), reference.Etcdctl, endpoint, "get", key)
	}
	return listed + time.Since(start)*time.Duration(len(secretKeys)/sampled)
}
