package commands

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/health"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/config"
	"github.com/etcdkit/etcdkit/internal/metricsfile"
	"github.com/etcdkit/etcdkit/internal/output"
)

// healthOptions are the flags of health.
type healthOptions struct {
	health.Options
	metricsURLs []string
	metricsFile string
	require     []string
	watch       time.Duration
	minFree     string
	upgrade     upgradeFlags
}

// maxReads bounds the load that a look at a cluster puts on it.
const maxReads = 10_000

// limits reads the thresholds. None can be zero, which would mean its default.
func (o *healthOptions) limits() error {
	l := &o.Limits
	for flag, ok := range map[string]bool{
		"reads": o.Reads > 0, "max-latency": l.Latency > 0, "max-lag": l.Lag > 0, "quota-warning": l.QuotaWarning > 0,
		"quota-critical": l.QuotaCritical > 0, "max-fragmentation": l.Fragmentation > 0, "cert-expiry": l.CertExpiry > 0,
		"max-fsync": l.Fsync > 0, "max-commit": l.Commit > 0, "min-events": l.SampleCount > 0,
	} {
		if !ok {
			return cli.Usagef("--%s: a value above zero is wanted", flag)
		}
	}
	if l.QuotaWarning > l.QuotaCritical {
		return cli.Usagef("--quota-warning %v is above --quota-critical %v, so that nothing would be a warning", l.QuotaWarning, l.QuotaCritical)
	}
	if o.Reads > maxReads {
		return cli.Usagef("--reads %d: at most %d reads are made through each member", o.Reads, maxReads)
	}
	var err error
	if l.FragmentedSize, err = parseBytes(o.minFree); err != nil {
		return cli.Usagef("--min-free: %w", err)
	}
	l.FragmentedSize = max(1, l.FragmentedSize)
	return nil
}

func newHealthCmd(a *app.App) *cobra.Command {
	var opts healthOptions
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Judge the whole cluster: one verdict, each problem with its evidence and next step",
		Long: `Asks every member of the cluster, found through the endpoints given, and judges:
who answers, the leader and quorum, how many failures can still be borne, read
latency, raft lag, versions, database size against quota, alarms, certificates,
and from the metrics the disks' and the network's timing.

Reachability, leader, quota and alarms are required: where one of them cannot be
seen, the verdict is unknown. Other evidence that is missing is listed, and
counts only with --require (reads, metrics, certs, hash, version, members).

Exit codes: 0 healthy, or degraded without --strict; 2 wrong usage; 3 unhealthy,
degraded with --strict, or not ready with --upgrade-to; 4 required evidence is
missing, nothing answered.`,
		Example: "  etcdkit health\n  etcdkit health --hash --require metrics,certs --strict -w json\n  etcdkit health --watch 5s\n  etcdkit health --upgrade-to 3.6 --snapshot now.db --repository @main",
		Args:    cobra.NoArgs,
		RunE:    a.Run(func(ctx context.Context, _ []string) error { return runHealth(ctx, a, opts) }),
	}
	f, l := cmd.Flags(), &opts.Limits
	f.BoolVar(&opts.Strict, "strict", false, "degraded is not good enough: exit 3")
	f.BoolVar(&opts.Hash, "hash", false, "compare the members' data by their hashes at one revision")
	f.BoolVar(&opts.Only, "only-endpoints", false, "judge the endpoints given, not the other members")
	f.StringSliceVar(&opts.require, "require", nil, "evidence that must not be missing: reads, metrics, certs, hash, version, members")
	f.StringSliceVar(&opts.metricsURLs, "metrics-urls", nil, "pages with the members' metrics, matched by host, or as HOST:PORT=PAGE by client URL (default /metrics at each client URL)")
	f.DurationVar(&opts.Sample, "sample", time.Second, "time between two looks at the metrics, 0 for none")
	f.IntVar(&opts.Reads, "reads", 5, "linearizable reads through each member")
	f.Int64Var(&opts.Quota, "quota-backend-bytes", 0, "quota of servers that do not tell theirs (etcd 3.5 without metrics)")
	f.DurationVar(&opts.watch, "watch", 0, "look again after this time, until Ctrl-C")
	f.StringVar(&opts.metricsFile, "metrics-file", "", "write the verdict for Prometheus' textfile collector")
	f.DurationVar(&l.Latency, "max-latency", 100*time.Millisecond, "warn when the median read takes longer")
	f.Uint64Var(&l.Lag, "max-lag", 1000, "warn when more committed entries are not applied")
	f.Float64Var(&l.QuotaWarning, "quota-warning", 0.8, "share of the quota that is a warning")
	f.Float64Var(&l.QuotaCritical, "quota-critical", 0.95, "share of the quota that is critical")
	f.Float64Var(&l.Fragmentation, "max-fragmentation", 0.5, "warn when a larger share of the file holds no data")
	f.StringVar(&opts.minFree, "min-free", "100MiB", "and at least this much of it")
	f.DurationVar(&l.CertExpiry, "cert-expiry", 30*24*time.Hour, "warn when a certificate expires within this time")
	f.DurationVar(&l.Fsync, "max-fsync", 10*time.Millisecond, "warn when the WAL fsync p99 is longer")
	f.DurationVar(&l.Commit, "max-commit", 25*time.Millisecond, "warn when the backend commit p99 is longer")
	f.Uint64Var(&l.SampleCount, "min-events", 50, "events in the sample from which a p99 is judged")
	config.Env(f, "metrics-urls")
	opts.upgrade.bind(cmd)
	return cmd
}

func runHealth(ctx context.Context, a *app.App, opts healthOptions) error {
	for _, name := range opts.require {
		kind := health.Kind(name)
		if !health.Optional(kind) {
			return cli.Usagef("--require %q: reads, metrics, certs, hash, version and members can be required", name)
		}
		opts.Require = append(opts.Require, kind)
		opts.Hash = opts.Hash || kind == health.KindHash
	}
	if err := opts.limits(); err != nil {
		return err
	}
	if err := opts.upgrade.check(opts.watch > 0); err != nil {
		return err
	}
	if opts.watch > 0 && opts.Hash { // a hash holds up its member's writes
		return cli.Usagef("--hash is not for --watch: computing a hash blocks writes on its member")
	}
	opts.Timeout = a.Global.CommandTimeout
	doors, endpoints, err := a.Doors(ctx, opts.metricsURLs)
	if err != nil {
		return err
	}
	check := func() error { return checkHealth(ctx, a, doors, endpoints, opts) }
	if opts.watch <= 0 {
		return check()
	}
	return watchHealth(ctx, a, opts.watch, check)
}

func checkHealth(ctx context.Context, a *app.App, doors health.Doors, endpoints []string, opts healthOptions) error {
	report, err := health.Check(ctx, doors, endpoints, opts.Options)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if opts.upgrade.to != "" && len(report.Members) > 0 {
		if upgradeErr := opts.upgrade.judge(ctx, a, &report); upgradeErr != nil {
			err = upgradeErr
		}
	}
	if opts.metricsFile != "" {
		err = errors.Join(err, metricsfile.Write(opts.metricsFile, healthMetrics(report)))
	}
	for i := range report.Problems {
		report.Problems[i].Next = a.NextStep(report.Problems[i].Next)
	}
	// The report is shown even when it is bad news.
	return errors.Join(a.Print(healthView(report)), app.Judged(err))
}

// watchHealth repeats check until a signal. What it found last decides the
// exit code of nothing: the signal does.
func watchHealth(ctx context.Context, a *app.App, every time.Duration, check func() error) error {
	for {
		if a.OutTTY {
			output.Raw(a.Out, "\x1b[H\x1b[2J")
		}
		err := check()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil && !errors.Is(err, cli.ErrVerdict) && !errors.Is(err, cli.ErrCannotTell) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(every):
		}
	}
}
