package commands

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/output"
	"github.com/etcdkit/etcdkit/snapshot"
)

func newSnapshotCheckStoreCmd(a *app.App) *cobra.Command {
	var f repoFlags
	cmd := &cobra.Command{
		Use:   "check-store REPO",
		Short: "Try everything that backups need of a folder or bucket",
		Long: `Puts, gets, lists and deletes small objects of its own in REPO, uploads one in
parts and breaks another upload off, and says for each step which right or
feature is missing.

Exit codes: 0 all there; 2 wrong usage or configuration; 3 something is missing;
4 REPO was not reached.`,
		Example: "  etcdkit snapshot check-store s3://backups/prod/ --s3-endpoint https://s3.example.com",
		Args:    cobra.ExactArgs(1),
		RunE: a.Run(func(ctx context.Context, args []string) error {
			repo, err := f.repository(ctx, a, args[0])
			if err != nil {
				return unreachable(err)
			}
			checks, err := snapshot.CheckStore(ctx, repo, a.Now)
			if errors.Is(err, snapshot.ErrStoreLacks) {
				err = cli.Verdict(err)
			}
			if len(checks) > 0 {
				err = errors.Join(a.Print(checkStoreResult(repo.URL(), checks)), err)
			}
			return unreachable(err)
		}),
	}
	f.bindS3(cmd, "")
	cmd.ValidArgsFunction = f.complete(a)
	return cmd
}

func checkStoreResult(url string, checks []snapshot.Check) output.Result {
	ok := true
	for _, c := range checks {
		ok = ok && c.Result == snapshot.ResultOK
	}
	return output.Result{
		JSON: struct {
			Repository string           `json:"repository"`
			OK         bool             `json:"ok"`
			Checks     []snapshot.Check `json:"checks"`
		}{url, ok, checks},
		Simple: func(w io.Writer) {
			for _, c := range checks {
				fmt.Fprintf(w, "%-5s %s", c.Result, c.Name)
				if c.Detail != "" {
					fmt.Fprintf(w, ": %s", c.Detail)
				}
				fmt.Fprintln(w)
			}
		},
		Table: func() ([]string, [][]string) {
			rows := make([][]string, len(checks))
			for i, c := range checks {
				rows[i] = []string{c.Name, string(c.Result), c.Detail}
			}
			return []string{"step", "result", "detail"}, rows
		},
	}
}
