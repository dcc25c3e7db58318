// Package utl holds etcdutl's commands, each once, for two dialects: upstream's
// under the name etcdutl, and etcdkit's own in its tree.
package utl

import (
	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/cli"
)

// New returns the etcdutl tree and what reports its errors.
func New(env *cli.Env) (*cobra.Command, func(error) int) {
	t := &tree{App: app.New("etcdutl", cli.Upstream, env)}
	root := &cobra.Command{
		Use: "etcdutl", Short: "An administrative command line tool for etcd3.",
		SuggestFor: []string{"etcdutl"},
	}
	// No SetOut: cobra would move the usage after a bad flag to standard output.
	root.SetErr(env.Err)
	root.SetIn(env.In)
	global := root.PersistentFlags()
	t.bindTimeout(global)
	global.StringVarP(&t.Global.WriteOut, "write-out", "w", "simple", "set the output format (fields, json, protobuf, simple, table)")
	app.CompleteValues(root, "write-out", app.UpstreamFormats()...)
	snapshot := &cobra.Command{Use: "snapshot <subcommand>", Short: "Manages etcd node snapshots"}
	snapshot.AddCommand(newRestoreCmd(t, nil), newStatusCmd(t))
	root.AddCommand(newDefragCmd(t), snapshot, newHashKVCmd(t), newVersionCmd(t), newCompletionCmd(t), newMigrateCmd(t))
	root.SetHelpTemplate(`{{.UsageString}}`)
	return root, t.report
}

// NativeHashKV returns hashkv for the root of the etcdkit tree.
func NativeHashKV(a *app.App) *cobra.Command { return newHashKVCmd(&tree{App: a}) }

// NativeMigrate returns migrate for the root of the etcdkit tree.
func NativeMigrate(a *app.App) *cobra.Command { return newMigrateCmd(&tree{App: a}) }

// NativeSnapshot returns etcdutl's commands for etcdkit's snapshot group.
// Beside files and data directories, a restore takes what sources open.
func NativeSnapshot(a *app.App, sources Sources) []*cobra.Command {
	t := &tree{App: a}
	return []*cobra.Command{newStatusCmd(t), newRestoreCmd(t, sources)}
}
