package commands

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/output"
	"github.com/etcdkit/etcdkit/snapshot"
)

func newSnapshotShowCmd(a *app.App) *cobra.Command {
	var f repoFlags
	var cluster string
	cmd := &cobra.Command{
		Use:   "show REPO [NAME]",
		Short: "Show what is known of one backup",
		Long: `Shows the manifest of a backup of REPO and its newest verification. NAME is the
backup's, or latest, which is the default.

Exit codes: 0; 1 there is no such backup, or REPO cannot be read; 2 wrong usage
or configuration.`,
		Example: "  etcdkit snapshot show s3://backups/prod/\n  etcdkit snapshot show @main 20260102T030405Z-8e9e05c52164694d-0a1b2c3d -w json",
		Args:    cobra.RangeArgs(1, 2),
		RunE: a.Run(func(ctx context.Context, args []string) error {
			name := "latest"
			if len(args) == 2 {
				name = args[1]
			}
			repo, err := f.existing(ctx, a, args[0])
			if err != nil {
				return err
			}
			b, all, err := snapshot.Choose(ctx, repo, snapshot.Choice{Cluster: cluster, Name: name})
			if err != nil {
				return storeKind(err)
			}
			tellLineages(a, all)
			return a.Print(showResult(b))
		}),
	}
	f.bindS3(cmd, "")
	f.bindTrust()
	cmd.ValidArgsFunction = f.completeBackups(a, 1)
	bindCluster(cmd.Flags(), &cluster, "look only at backups of this cluster")
	return cmd
}

// tellLineages says when latest had more than one lineage to choose from.
func tellLineages(a *app.App, all []*snapshot.Backup) {
	if lineages := snapshot.Lineages(all); len(lineages) > 1 {
		a.Note("there are %d lineages; latest is of the newest one, %s", len(lineages), lineages[0])
	}
}

func showResult(b *snapshot.Backup) output.Result {
	table := func() ([]string, [][]string) {
		header, rows := manifestTable(&b.Manifest)
		return header, append(rows, []string{"state", state(b)}, []string{"verified", verified(b)})
	}
	return output.Result{JSON: listedBackup{b, b.Good()}, Table: table, Simple: func(w io.Writer) {
		_, rows := table()
		for _, row := range rows {
			fmt.Fprintf(w, "%-16s %s\n", row[0]+":", output.Printable(row[1]))
		}
	}}
}
