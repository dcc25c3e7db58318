package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/disk"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/output"
	"github.com/etcdkit/etcdkit/internal/progress"
)

// usualDataDir is where packages and kubeadm keep etcd's data.
const usualDataDir = "/var/lib/etcd"

// fioJSON is the format of fio --output-format=json.
const fioJSON output.Format = "fio-json"

// diskFlags are the flags of disk check as they are typed.
type diskFlags struct {
	disk.Options
	pattern, require string
	size, block      byteSize
	report, compare  string
}

func newDiskCmd(a *app.App) *cobra.Command {
	return a.Group("disk", "Measure a disk before etcd has to live on it", newDiskCheckCmd(a))
}

func newDiskCheckCmd(a *app.App) *cobra.Command {
	var f diskFlags
	cmd := &cobra.Command{
		Use:   "check [DIR]",
		Short: "Measure a disk the way etcd uses it, and judge it",
		Long: `Writes 2300-byte records to a new file in DIR and syncs after each, several
rounds of 22 MiB, and tells the latency of the syncs, the class of cluster that
the disk carries, and what stops the next one. Without DIR it measures the data
directory of this node's etcd, or ` + usualDataDir + `.
It needs no etcd and no fio; its numbers agree with those of
fio --rw=write --ioengine=sync --fdatasync=1 --bs=2300 --size=22m.

A disk with a running etcd is not loaded (exit code 5) without --gentle or
--force. Where one cannot be ruled out, because processes could not be looked
into (run it as root on the host), the load is reduced as with --gentle.
An "ok" is borderline if another round than the quoted one misses a limit; the
exit code stays 0.

--require sets limits of your own: times (p50, p90, p95, p99, p99.9, max, mean)
must be below theirs, rates (iops; write and read bandwidth) must reach theirs.

Exit codes: 0 fast enough; 1 failed; 2 wrong usage; 3 below etcd's minimum (p99
below 10 ms, 50 IOPS, 10 MB/s), or with --require a limit not met; 4 the folder
cannot be measured; 5 a running etcd uses the disk, or cannot be ruled out.`,
		Example: "  etcdkit disk check /var/lib/etcd\n" +
			"  etcdkit disk check /mnt/new --require p99=10ms,iops=500 -w json",
		Args: cobra.MaximumNArgs(1),
		RunE: a.Run(func(ctx context.Context, args []string) error { return runDiskCheck(ctx, a, f, args) }),
	}
	fs := cmd.Flags()
	fs.StringVar(&f.pattern, "pattern", string(disk.Fio), fmt.Sprintf("how to write: %v", disk.Patterns()))
	fs.Var(&f.size, "size", "bytes that one round writes, such as 22MiB (default: the pattern's)")
	fs.Var(&f.block, "block", "bytes in one write (default: the pattern's)")
	fs.IntVar(&f.Rounds, "rounds", 0, "rounds to measure; the median one is quoted (default: the pattern's)")
	fs.DurationVar(&f.Duration, "duration", 0, "the longest that one round may take (default: the pattern's)")
	fs.IntVar(&f.Jobs, "jobs", 0, "writers at once, each with its own file; entries in a batch (wal); clients (etcd) (default 1)")
	fs.BoolVar(&f.ODSync, "odsync", false, "open with O_DSYNC instead of calling fdatasync")
	fs.BoolVar(&f.SkipBandwidth, "skip-bandwidth", false, "do not write and read back 128 MiB in large blocks after the rounds")
	fs.BoolVar(&f.Gentle, "gentle", false, "low impact, for a disk with a running etcd: at most 50 writes a second and a fifth of the time, and stop at a sync slower than 100 ms")
	fs.StringVar(&f.require, "require", "", "limits to meet, such as p99=10ms,iops=500,write=100MB")
	fs.StringVar(&f.report, "report", "", "also write an HTML page with charts, in one file, for a ticket")
	fs.StringVar(&f.compare, "compare", "", "show the changes since an earlier run that was kept with -w json")
	return app.Formats(cmd, append(output.Standard(), fioJSON)...)
}

func runDiskCheck(ctx context.Context, a *app.App, f diskFlags, args []string) error {
	opts, err := f.options(a, args)
	if err != nil {
		return cli.Usage(err)
	}
	old, err := f.old(a)
	if err != nil {
		return cli.Usage(err)
	}
	page, err := f.page()
	if err != nil {
		return cli.Usage(err)
	}
	report, err := measureDisk(ctx, a, opts)
	if report == nil {
		return errors.Join(err, page.discard())
	}
	readNeighbours(ctx, a, report)
	if old != nil {
		report.CompareWith(old)
	}
	return errors.Join(a.Print(diskResult(a, report)), page.write(report), err)
}

// measureDisk shows how far the measurement is.
func measureDisk(ctx context.Context, a *app.App, opts disk.Options) (*disk.Report, error) {
	meter := progress.To(a.Err, a.Live, a.Now, "measuring "+opts.Dir)
	defer meter.Done()
	if !a.Global.Quiet {
		opts.Progress = meter.Update
	}
	report, err := disk.Check(ctx, opts)
	return report, diskKind(err)
}

// options completes what the flags say with what is to be found out.
func (f diskFlags) options(a *app.App, args []string) (disk.Options, error) {
	opts := f.Options
	opts.Pattern = disk.Pattern(f.pattern)
	opts.Size, opts.Block = int64(f.size), int(f.block)
	opts.Force = a.Global.Force
	if f.require != "" {
		required, err := disk.ParseRequirements(f.require)
		if err != nil {
			return opts, fmt.Errorf("--require: %w", err)
		}
		opts.Require = required
	}
	if len(args) == 1 {
		opts.Dir = args[0]
		return opts, nil
	}
	var err error
	_, _ = a.Settings() // only for what it finds on the node
	opts.Dir, err = existingDir(cmp.Or(a.Global.Found.DataDir, usualDataDir))
	return opts, err
}

// existingDir returns dir, the data directory of this node's etcd or where one
// would be, if it is there.
func existingDir(dir string) (string, error) {
	if _, err := os.Stat(dir); err != nil {
		return "", hint.With(fmt.Errorf("no folder given, and there is no %s", dir), "name the folder that will hold etcd's data")
	}
	return dir, nil
}

// diskKind gives an error of the disk package its exit code.
func diskKind(err error) error {
	switch {
	case errors.Is(err, disk.ErrOptions):
		return cli.Usage(err)
	case errors.Is(err, disk.ErrEtcdRunning), errors.Is(err, disk.ErrEtcdUnseen):
		return cli.Guard(err)
	case errors.Is(err, disk.ErrTooSlow):
		return cli.Verdict(err)
	case errors.Is(err, disk.ErrCannotMeasure):
		return cli.CannotTell(err)
	}
	return err
}

func diskResult(a *app.App, r *disk.Report) output.Result {
	return output.Result{
		JSON:   r,
		Simple: func(w io.Writer) { printDisk(w, r, a.Color()) },
		Table:  func() ([]string, [][]string) { return diskTable(r) },
		Other:  map[output.Format]func(io.Writer) error{fioJSON: r.WriteFio},
	}
}

// byteSize is a flag that takes "22MiB" or "2300".
type byteSize int64

func (b *byteSize) Type() string { return "size" }

func (b *byteSize) String() string {
	if *b == 0 {
		return ""
	}
	return humanize.IBytes(uint64(*b))
}

func (b *byteSize) Set(s string) error {
	n, err := humanize.ParseBytes(s)
	if err != nil || n > 1<<50 || n == 0 {
		return fmt.Errorf("%q is no size such as 22MiB", s)
	}
	*b = byteSize(n)
	return nil
}
