package commands

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/output"
	"github.com/etcdkit/etcdkit/snapshot"
)

func newSnapshotCopyCmd(a *app.App) *cobra.Command {
	var from, to repoFlags
	var opts snapshot.CopyOptions
	cmd := &cobra.Command{
		Use:   "copy FROM TO [NAME...]",
		Short: "Copy backups from one folder or bucket to another",
		Long: `Copies the backups NAME (latest is one), or all, from FROM to TO, each a folder,
s3://BUCKET/PREFIX/ or @NAME. What TO has already is left alone. Between buckets
of one account the service copies by itself; what passes through here is checked
against the manifest. The --s3 flags are FROM's, those beginning --to-s3 TO's.

Exit codes: 0 copied, or all there already; 1 failed; 2 wrong usage or configuration.`,
		Example: "  etcdkit snapshot copy @main @offsite latest\n  etcdkit snapshot copy /var/backups/etcd/ s3://vault/etcd/ --to-s3-endpoint https://s3.example.com",
		Args:    cobra.MinimumNArgs(2),
		RunE: a.Run(func(ctx context.Context, args []string) error {
			src, err := from.existing(ctx, a, args[0])
			if err != nil {
				return err
			}
			location, err := to.locate(a, args[1], "to-")
			if err != nil {
				return err
			}
			dst, err := to.open(ctx, a, location)
			if err != nil {
				return err
			}
			opts.Names = args[2:]
			copied, err := snapshot.CopyBackups(ctx, src, dst, opts)
			if err == nil || len(copied) > 0 {
				err = errors.Join(a.Print(copiedResult(copied)), err)
			}
			return storeKind(err)
		}),
	}
	from.bindS3(cmd, "")
	from.bindTrust()
	to.bindS3(cmd, "to-")
	cmd.ValidArgsFunction = from.completeBackups(a, 2)
	bindCluster(cmd.Flags(), &opts.Cluster, "copy only backups of this cluster")
	return cmd
}

func copiedResult(copied []snapshot.CopiedBackup) output.Result {
	rows := func() [][]string {
		rows := make([][]string, len(copied))
		for i, c := range copied {
			how := "there already"
			switch {
			case c.Problem != "":
				how = "not copied, it is no whole backup: " + c.Problem
			case c.ServerSide:
				how = "copied by the service"
			case c.Copied:
				how = "copied"
			}
			rows[i] = []string{c.Name, how, output.Bytes(c.Bytes)}
		}
		return rows
	}
	return output.Result{
		JSON: struct {
			Backups []snapshot.CopiedBackup `json:"backups"`
		}{copied},
		Simple: func(w io.Writer) {
			if len(copied) == 0 {
				fmt.Fprintln(w, "no backups")
			}
			for _, row := range rows() {
				fmt.Fprintf(w, "%s: %s, %s\n", row[0], row[1], row[2])
			}
		},
		Table: func() ([]string, [][]string) { return []string{"name", "result", "stored"}, rows() },
	}
}
