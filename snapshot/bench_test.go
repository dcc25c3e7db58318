//go:build bench && unix

package snapshot_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/internal/testing/reference"
	"github.com/etcdkit/etcdkit/internal/testing/s3test"
)

const (
	benchRounds = 5
	benchValue  = 10_000
	benchBatch  = 10_000 // keys written at a time
	benchMB     = 1400   // size of the database, unless BACKUP_BENCH_MB says another
)

// contender is one way to take a backup, run as a process of its own.
type contender struct {
	name  string
	steps func() []*exec.Cmd // one after the other
	took  []time.Duration
	peak  int64         // bytes resident
	cpu   time.Duration // of all rounds but the first
}

func (c *contender) run(b *testing.B, round int) {
	b.Helper()
	start := time.Now()
	for _, cmd := range c.steps() {
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%s: %v\n%s", c.name, err, out)
		}
		if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			c.peak = max(c.peak, usage.Maxrss<<10) // kibibytes on Linux
		}
		if round > 0 {
			c.cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		}
	}
	if round > 0 { // the first warms up
		c.took = append(c.took, time.Since(start))
	}
}

func (c *contender) median() time.Duration {
	slices.Sort(c.took)
	return c.took[len(c.took)/2]
}

// BenchmarkSave takes backups of a large database in turn: by etcdkit to S3,
// by a bare pipe to S3, by upstream's etcdctl to a file, and by that and rclone
// to S3. It needs bin/etcdkit, which make bench builds.
func BenchmarkSave(b *testing.B) {
	program, err := filepath.Abs("../bin/etcdkit")
	if err != nil {
		b.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		b.Fatal("run it by: make bench PKG=./snapshot")
	}
	etcd := etcdtest.StartServers(b, etcdtest.ServerOptions{Flags: []string{"--quota-backend-bytes=8000000000"}}).Members[0]
	size := benchSize(b)
	client := etcdtest.Client(b, etcd.Endpoint)
	for i := 0; i*benchBatch*benchValue < size<<20; i++ {
		etcdtest.Fill(b, client, fmt.Sprintf("/registry/bench/%d/", i), benchBatch, benchValue)
	}
	server := s3test.Start(b, s3test.Options{})
	bucket, dir := server.Bucket(b), b.TempDir()
	env := slices.Clip(append(os.Environ(), server.Environ()...)) // each command appends its own
	command := func(env []string, name string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(b.Context(), name, args...)
		cmd.Env = env
		return cmd
	}
	ours := &contender{name: "etcdkit snapshot save s3://", steps: func() []*exec.Cmd {
		return []*exec.Cmd{command(append(env, "XDG_STATE_HOME="+dir), program, "--endpoints", etcd.Endpoint, "snapshot", "save",
			"s3://"+bucket+"/bench/", "--s3-endpoint", server.URL, "--quiet", "--keep-last", "1")}
	}}
	bare := &contender{name: "bare pipe, clientv3 to minio-go", steps: func() []*exec.Cmd {
		return []*exec.Cmd{command(append(env, envVictim+"="+barePipe, envEtcd+"="+etcd.Endpoint, envS3+"="+server.URL, envURL+"="+bucket), os.Args[0])}
	}}
	upstream := filepath.Join(dir, "upstream.db")
	save := func() []*exec.Cmd {
		return []*exec.Cmd{command(env, reference.Path(b, reference.Etcdctl), "--endpoints", etcd.Endpoint, "snapshot", "save", upstream)}
	}
	all := []*contender{ours, bare, {name: "etcdctl snapshot save FILE", steps: save}}
	if rclone, err := exec.LookPath("rclone"); err == nil {
		env := append(env, "AWS_CA_BUNDLE=", "RCLONE_CONFIG="+os.DevNull, "RCLONE_CONFIG_BENCH_TYPE=s3", "RCLONE_CONFIG_BENCH_PROVIDER=Other", "RCLONE_CONFIG_BENCH_ENV_AUTH=true",
			"RCLONE_CONFIG_BENCH_ENDPOINT="+server.URL, "RCLONE_CONFIG_BENCH_REGION="+s3test.Region, "RCLONE_CONFIG_BENCH_FORCE_PATH_STYLE=true")
		all = append(all, &contender{name: "the same, then rclone copyto --s3-chunk-size 64Mi", steps: func() []*exec.Cmd {
			return append(save(), command(env, rclone, "copyto", "--s3-chunk-size", "64Mi", "--s3-no-check-bucket", upstream, "bench:"+bucket+"/rclone.db"))
		}})
	}
	for round := range benchRounds + 1 {
		for i := range all { // nobody always comes first
			all[(i+round)%len(all)].run(b, round)
		}
	}
	report(all, bare, size)
	b.ReportMetric(float64(ours.median())/float64(bare.median()), "of-bare-pipe")
}

func benchSize(b *testing.B) int {
	b.Helper()
	size := benchMB
	if s := os.Getenv("BACKUP_BENCH_MB"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			b.Fatal(err)
		}
		size = n
	}
	return size
}

func report(all []*contender, base *contender, size int) {
	fmt.Printf("\nsaving a database of %d MB, medians of %d rounds taken in turn\n\n", size, benchRounds)
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "\tmedian\tof the bare pipe\tCPU time\tpeak memory\t")
	for _, c := range all {
		fmt.Fprintf(w, "%s\t%s\t%.2f\t%s\t%d MiB\t\n", c.name, c.median().Round(10*time.Millisecond), float64(c.median())/float64(base.median()),
			(c.cpu / benchRounds).Round(10*time.Millisecond), c.peak>>20)
	}
	_ = w.Flush()
	if _, err := exec.LookPath("rclone"); err != nil {
		fmt.Println("\nNOT MEASURED: etcdctl snapshot save, then rclone copyto: rclone is not installed (apt-get install rclone)")
	}
}
