package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/health"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/output"
)

// defragOptions are the flags of defrag-all.
type defragOptions struct {
	health.DefragOptions
	minFree     string
	diskFree    []string
	dataDirs    []string
	dryRun      bool
	metricsURLs []string
}

func newDefragAllCmd(a *app.App) *cobra.Command {
	var opts defragOptions
	cmd := &cobra.Command{
		Use:   "defrag-all",
		Short: "Defragment the members that are worth it, one at a time, the leader last",
		Long: `Plans first: which members hold enough space without data, what comes back, how
long each will stand still (a forecast), whether the copy fits on its disk. Then
defragments followers, hands leadership to a member already done, and takes the
old leader last. Between members it waits until the cluster is well and has
caught up. It holds a lock in etcd (key ` + health.LockKey + `), stops at the
first failure, and says what was done and what was not. Learners are left out.

A signal stops it before the next member; the one at work is waited for.

Exit codes: 0 done, or nothing worth doing; 1 failed; 2 wrong usage; 3 the
cluster is not well enough to go on; 4 nothing answered; 5 refused: quorum would
be at risk, a disk is too small, another maintenance runs; 129, 130, 131, 143 ended
by a signal.`,
		Example: "  etcdkit defrag-all --dry-run\n  etcdkit defrag-all --compact --pause 30s\n  etcdkit defrag-all --members m1,m2 --all",
		Args:    cobra.NoArgs,
		RunE:    a.Run(func(ctx context.Context, _ []string) error { return runDefragAll(ctx, a, opts) }),
	}
	f := cmd.Flags()
	f.BoolVar(&opts.dryRun, "dry-run", false, "show the plan and do nothing")
	f.StringSliceVar(&opts.Members, "members", nil, "only these members, by name, id or endpoint, worth it or not")
	f.BoolVar(&opts.All, "all", false, "every member, worth it or not")
	f.BoolVar(&opts.SkipLeader, "skip-leader", false, "leave the leader out")
	f.Float64Var(&opts.MinFragmentation, "min-fragmentation", 0.45, "share of the file without data from which a member is worth it")
	f.StringVar(&opts.minFree, "min-free", "100MiB", "and at least this much of it")
	f.Float64Var(&opts.MinQuotaUsed, "min-quota-used", 0.8, "share of the quota used from which a tenth of the file is worth it")
	f.BoolVar(&opts.Compact, "compact", false, "compact first, so that history's space comes back too")
	f.Int64Var(&opts.Keep, "keep", 1000, "revisions that --compact keeps")
	f.DurationVar(&opts.Pause, "pause", 0, "pause between two members")
	f.DurationVar(&opts.GateTimeout, "gate-timeout", 2*time.Minute, "how long the cluster may take to be well again")
	f.DurationVar(&opts.StallTimeout, "stall-timeout", 30*time.Second, "fail when a member shows no sign of life for this long")
	f.BoolVar(&opts.ContinueOnError, "continue-on-error", false, "go on with the next member after a failure")
	bindSpace(f, &opts.diskFree, &opts.dataDirs)
	f.StringSliceVar(&opts.metricsURLs, "metrics-urls", nil, "pages with the members' metrics, matched by host")
	return cmd
}

// smallestShare is a share that every member reaches that wastes or uses anything.
const smallestShare = 1e-9

func (o *defragOptions) parse() error {
	var err error
	if o.MinFree, err = parseBytes(o.minFree); err != nil {
		return cli.Usagef("--min-free: %w", err)
	}
	if o.Keep < 0 {
		return cli.Usagef("--keep %d: revisions cannot be negative", o.Keep)
	}
	// Zero means the default to package health, and the smallest value to a user.
	o.MinFree = max(1, o.MinFree)
	o.MinFragmentation, o.MinQuotaUsed = max(smallestShare, o.MinFragmentation), max(smallestShare, o.MinQuotaUsed)
	o.DiskFree, err = freeSpace(o.diskFree, o.dataDirs)
	o.MustExist = slices.Sorted(maps.Keys(o.DiskFree))
	return err
}

func runDefragAll(ctx context.Context, a *app.App, opts defragOptions) error {
	if err := opts.parse(); err != nil {
		return err
	}
	opts.Force = a.Global.Force
	tools, endpoints, err := a.Tools(ctx, opts.metricsURLs)
	if err != nil {
		return err
	}
	addLocalSpace(a, opts.DiskFree)
	if opts.dryRun {
		out, err := health.DefragDryRun(ctx, tools, endpoints, opts.DefragOptions)
		return errors.Join(a.Print(outcomeView(out, err)), app.Judged(err))
	}
	out, err := health.Defrag(ctx, tools, endpoints, opts.DefragOptions)
	return errors.Join(a.Print(outcomeView(out, err)), app.Judged(err))
}

// outcomeView shows what was planned and what was done.
// That there is nothing to do is said only where that was seen.
func outcomeView(o *health.Outcome, err error) output.Result {
	return output.Result{
		JSON: o,
		Simple: func(w io.Writer) {
			if len(o.Plan) == 0 && err != nil {
				return
			}
			fmt.Fprintln(w, "plan:")
			for i, action := range o.Plan {
				fmt.Fprintf(w, "  %d. %s\n", i+1, actionWords(action))
			}
			if len(o.Plan) == 0 {
				fmt.Fprintln(w, "  nothing to do")
			}
			if len(o.Steps) > 0 {
				fmt.Fprintln(w, "done:")
			}
			for _, s := range o.Steps {
				fmt.Fprintf(w, "  %-6s %s: %s (%.1f s)\n", map[bool]string{true: "ok", false: "FAILED"}[s.OK], strings.TrimSpace(s.Action+" "+withID(s.Member, s.MemberIDHex)), s.Detail, s.TookSeconds)
			}
			if len(o.Leftover) > 0 {
				fmt.Fprintf(w, "not reached: %s\n", strings.Join(o.Leftover, ", "))
			}
		},
		Table: func() ([]string, [][]string) {
			var rows [][]string
			for _, action := range o.Plan {
				rows = append(rows, []string{"planned", action.Action, action.Member, action.Detail, ""})
			}
			for _, s := range o.Steps {
				rows = append(rows, []string{map[bool]string{true: "ok", false: "failed"}[s.OK], s.Action, s.Member, s.Detail, fmt.Sprintf("%.1f s", s.TookSeconds)})
			}
			return []string{"state", "action", "member", "detail", "took"}, rows
		},
	}
}

// withID names a member with its id, for a name alone may fit several.
func withID(member, id string) string {
	if id == "" || strings.Contains(member, id) {
		return member
	}
	return strings.TrimSpace(member + " (" + id + ")")
}

func actionWords(a health.Action) string {
	words := strings.TrimSpace(a.Action+" "+withID(a.Member, a.MemberIDHex)) + ": " + a.Detail
	if a.Action != "defrag" {
		return words
	}
	pause := output.Duration(time.Duration(a.PauseSeconds * float64(time.Second)))
	if a.ReclaimBytes > 0 { // alarm recover does not know it before the compaction
		words += fmt.Sprintf("; about %s back", output.Bytes(a.ReclaimBytes))
	}
	return fmt.Sprintf("%s; stands still about %s, needs %s on its disk (%s)", words, pause, output.Bytes(a.NeedBytes), a.Disk)
}
