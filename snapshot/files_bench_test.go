//go:build bench

package snapshot_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/testing/gendb"
	"github.com/etcdkit/etcdkit/internal/testing/reference"
)

// BenchmarkFiles holds restore, status and hashkv of a 1.4 GB snapshot against
// upstream's etcdutl, turn by turn: x-restore (wanted: 0.75 at most), x-status
// and x-hashkv (0.8). Ours checks the SHA-256 and every revision in each.
func BenchmarkFiles(b *testing.B) {
	dir := b.TempDir()
	db, scratch := filepath.Join(dir, "big.db"), filepath.Join(dir, "hashed.db")
	if err := gendb.Write(b.Context(), db, gendb.Options{Keys: 1_000_000, ValueBytes: 1024, SecretEvery: 10}); err != nil {
		b.Fatal(err)
	}
	kit := filepath.Join(dir, "etcdkit")
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", kit, "../cmd/etcdkit").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	upstream, target := reference.Path(b, reference.Etcdutl), filepath.Join(dir, "data")
	jobs := []struct {
		name         string
		theirs, ours []string
	}{
		{"restore", []string{"snapshot", "restore", db, "--data-dir", target}, []string{"snapshot", "restore", db, "--data-dir", target, "--bump-revision", "none"}},
		{"status", []string{"snapshot", "status", db}, []string{"snapshot", "status", db}},
		{"hashkv", []string{"hashkv", scratch}, []string{"hashkv", db}},
	}
	took := make(map[string][]time.Duration)
	for b.Loop() {
		copyTo(b, db, scratch) // upstream's hashkv changes what it reads
		for _, j := range jobs {
			took["etcdutl-"+j.name] = append(took["etcdutl-"+j.name], timed(b, target, upstream, j.theirs))
			took[j.name] = append(took[j.name], timed(b, target, kit, j.ours))
		}
	}
	for _, j := range jobs {
		theirs, ours := middleOf(took["etcdutl-"+j.name]), middleOf(took[j.name])
		b.ReportMetric(theirs.Seconds(), "etcdutl-"+j.name+"-s")
		b.ReportMetric(ours.Seconds(), j.name+"-s")
		b.ReportMetric(ours.Seconds()/theirs.Seconds(), "x-"+j.name)
	}
}

// timed runs a program and removes what it restored.
func timed(b *testing.B, target, program string, args []string) time.Duration {
	b.Helper()
	start := time.Now()
	out, err := exec.CommandContext(b.Context(), program, args...).CombinedOutput()
	took := time.Since(start)
	if err != nil {
		b.Fatalf("%s %q: %v\n%s", program, args, err, out)
	}
	if err := os.RemoveAll(target); err != nil {
		b.Fatal(err)
	}
	return took
}

func copyTo(b *testing.B, from, to string) {
	b.Helper()
	src, err := os.Open(from)
	if err != nil {
		b.Fatal(err)
	}
	defer src.Close()
	dst, err := os.Create(to)
	if err != nil {
		b.Fatal(err)
	}
	defer dst.Close()
	if _, err := io.Copy(dst, src); err != nil {
		b.Fatal(err)
	}
}

func middleOf(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}
