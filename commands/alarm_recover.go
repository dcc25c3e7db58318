package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/health"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/output"
)

func newAlarmRecoverCmd(a *app.App) *cobra.Command {
	var (
		opts     health.RecoverOptions
		diskFree []string
		dataDirs []string
		metrics  []string
	)
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "Take the cluster out of the NOSPACE alarm",
		Long: `Shows what fills the database, drops history but for --keep revisions, gives the
space back member by member as defrag-all does, disarms NOSPACE where there is
room again, and proves it with a write that is removed again. Each step says why
it is needed. It can be run again after an interruption.

A CORRUPT alarm is never disarmed: the command refuses, and names the member.

Exit codes: 0 recovered, or no NOSPACE alarm armed; 1 failed, or live data alone
fill the quota; 2 wrong usage; 3 the cluster is not well enough to go on; 4
nothing answered; 5 refused (CORRUPT, no quorum, a disk too small, another
maintenance runs); 129, 130, 131, 143 ended by a signal.`,
		Example: "  etcdkit alarm recover --dry-run\n  etcdkit alarm recover --keep 0",
		Args:    cobra.NoArgs,
		RunE: a.Run(func(ctx context.Context, _ []string) error {
			free, err := freeSpace(diskFree, dataDirs)
			if err != nil {
				return err
			}
			opts.Defrag.DiskFree, opts.Defrag.Force = free, a.Global.Force
			opts.Defrag.MustExist = slices.Sorted(maps.Keys(free))
			return runAlarmRecover(ctx, a, opts, metrics)
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&opts.DryRun, "dry-run", false, "show what fills the database and the plan, and change nothing")
	f.Int64Var(&opts.Keep, "keep", 1000, "revisions of history to keep")
	f.Float64Var(&opts.DisarmBelow, "disarm-below", 0.9, "share of the quota below which a member has room again")
	f.BoolVar(&opts.Survey, "survey", true, "read all live keys, to show what fills the database")
	f.DurationVar(&opts.Defrag.Pause, "pause", 0, "pause between two members")
	f.DurationVar(&opts.Defrag.GateTimeout, "gate-timeout", 2*time.Minute, "how long the cluster may take to be well again")
	f.DurationVar(&opts.Defrag.StallTimeout, "stall-timeout", 30*time.Second, "fail when a member shows no sign of life for this long")
	bindSpace(f, &diskFree, &dataDirs)
	f.StringSliceVar(&metrics, "metrics-urls", nil, "pages with the members' metrics, matched by host")
	return cmd
}

func runAlarmRecover(ctx context.Context, a *app.App, opts health.RecoverOptions, metricsURLs []string) error {
	if opts.Keep < 0 {
		return cli.Usagef("--keep %d: revisions cannot be negative", opts.Keep)
	}
	if opts.DisarmBelow <= 0 || opts.DisarmBelow >= 1 {
		return cli.Usagef("--disarm-below %v: a share between 0 and 1 is wanted", opts.DisarmBelow)
	}
	tools, endpoints, err := a.Tools(ctx, metricsURLs)
	if err != nil {
		return err
	}
	addLocalSpace(a, opts.Defrag.DiskFree)
	out, err := health.Recover(ctx, tools, endpoints, opts)
	return errors.Join(a.Print(recoveryView(out, err)), app.Judged(err))
}

// recoveryView is the view of an outcome below what fills the database. That
// there is nothing to do is said only where that was seen.
func recoveryView(r *health.Recovery, err error) output.Result {
	view := outcomeView(&r.Outcome, err)
	view.JSON = r
	steps := view.Simple
	view.Simple = func(w io.Writer) {
		if len(r.Plan) == 0 {
			if err == nil {
				fmt.Fprintln(w, "no NOSPACE alarm is armed")
			}
			return
		}
		if c := r.Content; c != nil {
			fmt.Fprintf(w, "%s in use: %s live in %d keys, %s history and overhead (etcdkit db du on a snapshot shows the rest)\n",
				output.Bytes(c.InUseBytes), output.Bytes(c.LiveBytes), c.Keys, output.Bytes(c.RestBytes))
			for _, p := range c.Prefixes {
				fmt.Fprintf(w, "  %10s  %8d keys  %s\n", output.Bytes(p.Bytes), p.Keys, p.Prefix)
			}
		}
		steps(w)
	}
	return view
}
