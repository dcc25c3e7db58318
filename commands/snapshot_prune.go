package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/output"
	"github.com/etcdkit/etcdkit/snapshot"
)

func newSnapshotPruneCmd(a *app.App) *cobra.Command {
	var f repoFlags
	opts := snapshot.PruneOptions{Now: a.Now}
	var stale longDuration
	cmd := &cobra.Command{
		Use:   "prune REPO",
		Short: "Delete the backups that no rule keeps, and what killed runs left",
		Long: `Keeps the backups of REPO that at least one --keep rule keeps and deletes the
others, with the reason for each. The rules count only good backups, and never
take the newest good one. Only the newest lineage is touched, unless --lineage
names another; a locked backup stays, and so does one that cannot be read.

Ages are counted by the clock of the folder's file system or of the bucket. If
that clock and the local one disagree by more than 5 minutes, or the newest
backup is many intervals old, nothing is deleted without --force.

Exit codes: 0 pruned; 1 failed; 2 wrong usage or configuration; 5 refused,
because it is not certain what time it is.`,
		Example: "  etcdkit snapshot prune s3://backups/prod/ --keep-daily 14 --keep-weekly 8 --keep-monthly 12 --dry-run",
		Args:    cobra.ExactArgs(1),
		RunE: a.Run(func(ctx context.Context, args []string) error {
			location, err := f.locate(a, args[0], "")
			if err != nil {
				return err
			}
			opts.Policy = f.keep.policy()
			if err := opts.Validate(); err != nil {
				return cli.Usage(err)
			}
			repo, err := f.existing(ctx, a, location)
			if err != nil {
				return err
			}
			opts.Runs, opts.StaleAfter = snapshot.Runs{Dir: runsDir(a)}, time.Duration(stale)
			pruned, err := snapshot.Prune(ctx, repo, opts)
			if pruned != nil {
				for _, note := range pruned.Notes {
					a.Warn("%s", note)
				}
				err = errors.Join(a.Print(prunedResult(pruned)), err)
			}
			if errors.Is(err, snapshot.ErrUnsureTime) {
				return cli.Guard(err)
			}
			return storeKind(err)
		}),
	}
	f.bindS3(cmd, "")
	f.bindTrust()
	cmd.ValidArgsFunction = f.complete(a)
	f.keep.bind(cmd.Flags())
	fs := cmd.Flags()
	fs.BoolVar(&opts.Force, "force", false, "delete even if it is not certain what time it is")
	fs.BoolVar(&opts.DryRun, "dry-run", false, "only show what would be done, and why")
	bindCluster(fs, &opts.Cluster, "prune only backups of this cluster")
	fs.StringVar(&opts.Lineage, "lineage", "", "prune this lineage instead of the newest")
	fs.Var(&stale, "stale-after", "age at which leftovers of other machines are removed (default 24h)")
	return cmd
}

func prunedResult(p *snapshot.Pruned) output.Result {
	action := func(deleted, kept bool) string {
		switch {
		case kept:
			return "not deleted"
		case p.DryRun:
			return "would delete"
		case deleted:
			return "deleted"
		}
		return "not deleted"
	}
	rows := func() [][]string {
		var rows [][]string
		for _, d := range p.Decisions {
			what := "keep"
			if !d.Keep {
				what = action(d.Deleted, false)
			}
			rows = append(rows, []string{what, d.Backup.Name, output.Bytes(d.Backup.StoredBytes), strings.Join(d.Reasons, ", ")})
		}
		for _, l := range p.Leftovers {
			rows = append(rows, []string{action(l.Removed, l.Kept), l.Key, "", l.Reason})
		}
		return rows
	}
	return output.Result{
		JSON: p,
		Simple: func(w io.Writer) {
			for _, row := range rows() {
				fmt.Fprintf(w, "%-12s %s: %s\n", row[0], row[1], row[3])
			}
		},
		Table: func() ([]string, [][]string) { return []string{"action", "name", "stored", "reason"}, rows() },
	}
}
