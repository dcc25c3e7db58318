package utl

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/output"
	"github.com/etcdkit/etcdkit/snapshot"
)

// newDefragCmd is upstream's only: natively it is a flag of the defrag that
// works on members, see WithDataDir.
func newDefragCmd(t *tree) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "defrag", Short: "Defragments the storage of the etcd",
		RunE: t.run(func(ctx context.Context, _ []string) error { return runDefrag(ctx, t, dir) }),
	}
	cmd.Flags().StringVar(&dir, "data-dir", "", "Required. Defragments a data directory not in use by etcd.")
	app.Must(cmd.MarkFlagRequired("data-dir"))
	app.Must(cmd.MarkFlagDirname("data-dir"))
	return cmd
}

// WithDataDir gives the defrag that works on members the flag that makes it
// work on a data directory instead.
func WithDataDir(a *app.App, cmd *cobra.Command) {
	t := &tree{App: a}
	var dir string
	cmd.Flags().StringVar(&dir, "data-dir", "", "defragment this data directory, which no etcd uses, instead of members")
	app.Must(cmd.MarkFlagDirname("data-dir"))
	t.bindTimeout(cmd.Flags())
	members, offline := cmd.RunE, t.run(func(ctx context.Context, _ []string) error { return runDefrag(ctx, t, dir) })
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if dir == "" {
			return members(cmd, args)
		}
		if cmd.Flags().Changed("cluster") {
			return cli.Usagef("--data-dir and --cluster exclude each other")
		}
		return offline(cmd, args)
	}
}

func runDefrag(ctx context.Context, t *tree, dir string) error {
	d, err := snapshot.DefragmentDataDir(ctx, dir, t.lockWait, t.log())
	if err != nil && t.upstream() {
		return fmt.Errorf("Failed to defragment etcd data[%s] (%w)", dir, err) //nolint:staticcheck // upstream's words
	}
	if err != nil || t.upstream() {
		return err
	}
	return t.print(output.Result{
		JSON: defragmented{DataDir: d.DataDir, BytesBefore: d.Before, BytesAfter: d.After},
		Simple: func(w io.Writer) {
			fmt.Fprintf(w, "defragmented %s: %s\n", d.DataDir, output.SizeChange(d.Before, d.After))
		},
	})
}

type defragmented struct {
	DataDir     string `json:"dataDir"`
	BytesBefore int64  `json:"bytesBefore"`
	BytesAfter  int64  `json:"bytesAfter"`
}
