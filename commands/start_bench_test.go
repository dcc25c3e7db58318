//go:build bench

package commands_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/etcdkit/etcdkit/internal/testing/reference"
)

// startPairs is how often BenchmarkStart starts each of two programs.
const startPairs = 60

// BenchmarkStart compares how long each of the three programs takes to tell its
// version with how long upstream's etcdutl takes.
func BenchmarkStart(b *testing.B) {
	theirs := rival{"etcdutl", reference.Path(b, reference.Etcdutl)}
	bin, err := filepath.Abs("../bin/etcdkit")
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"etcdkit", "etcdctl", "etcdutl"} {
		b.Run(name, func(b *testing.B) {
			ours := rival{name, filepath.Join(b.TempDir(), name)}
			if err := os.Symlink(bin, ours.path); err != nil {
				b.Fatal(err)
			}
			for range b.N {
				wall, cpu := startRatios(b, ours, theirs)
				b.ReportMetric(wall, "wall/upstream")
				b.ReportMetric(cpu, "cpu/upstream")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// startRatios returns the medians of the ratios of startPairs pairs of runs.
func startRatios(b *testing.B, ours, theirs rival) (wall, cpu float64) {
	b.Helper()
	var walls, cpus []float64
	for range startPairs {
		us, them := ours.measure(b, "", "version"), theirs.measure(b, "", "version")
		walls = append(walls, us.wall.Seconds()/them.wall.Seconds())
		cpus = append(cpus, us.cpu.Seconds()/them.cpu.Seconds())
	}
	slices.Sort(walls)
	slices.Sort(cpus)
	return walls[startPairs/2], cpus[startPairs/2]
}
