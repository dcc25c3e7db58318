// Package ctl holds etcdctl's commands, each once, for two dialects: upstream's
// under the name etcdctl, and etcdkit's own in its tree.
//
// A command is a constructor that takes the tree, in a file of its own. It
// reads flags, makes one request and lists the forms of the result; the tree
// connects, prints and reports by its dialect.
package ctl

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/cli"
)

// The groups of the root's help page.
const (
	groupKV          = "kv"
	groupMaintenance = "cluster maintenance"
	groupConcurrency = "concurrency"
	groupAuth        = "authentication"
	groupUtility     = "utility"
)

// Groups returns the groups that the commands are in, for the root of a tree.
func Groups() []*cobra.Group {
	return []*cobra.Group{
		{ID: groupKV, Title: "Key-value commands"},
		{ID: groupMaintenance, Title: "Cluster maintenance commands"},
		{ID: groupConcurrency, Title: "Concurrency commands"},
		{ID: groupAuth, Title: "Authentication commands"},
		{ID: groupUtility, Title: "Utility commands"},
	}
}

// New returns the etcdctl tree, as far as a command line needs it, and what
// reports its errors.
func New(env *cli.Env, line []string) (*cobra.Command, func(error) int) {
	t := &tree{App: app.New("etcdctl", cli.Upstream, env)}
	root := &cobra.Command{
		Use: "etcdctl", Short: "A simple command line client for etcd3.",
		SuggestFor: []string{"etcdctl"},
	}
	// No SetOut: cobra would move the usage after a bad flag to standard output.
	root.SetErr(env.Err)
	root.SetIn(env.In)
	global := root.PersistentFlags()
	t.Global.Bind(global, t.Dialect)
	app.CompleteValues(root, "write-out", app.UpstreamFormats()...)
	root.AddGroup(Groups()...)
	root.CompletionOptions.DisableDefaultCmd = true // it has its own
	app.Grow(root, branches(t), line)
	root.SetHelpCommandGroupID(groupUtility)

	global.VisitAll(func(f *pflag.Flag) { f.Hidden = true })
	root.Flags().BoolP("help", "h", false, "help for etcdctl")
	root.Flags().Lookup("help").Hidden = true
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		help(cmd, args)
		fmt.Fprintln(cmd.OutOrStdout(), `Use "etcdctl options" for a list of global command-line options (applies to all commands).`)
	})
	return root, t.report
}

// Native returns etcdctl's commands for the etcdkit tree, which has a snapshot
// group of its own.
func Native(a *app.App) []app.Branch {
	return slices.DeleteFunc(branches(&tree{App: a}), func(b app.Branch) bool { return b.Name == "snapshot" })
}

// branches are the commands, in the order in which upstream adds them:
// suggestions after a misspelt name come in that order.
func branches(t *tree) []app.Branch {
	var all []app.Branch
	for _, c := range []struct {
		name  string
		build func(*tree) *cobra.Command
	}{
		{"get", newGetCmd},
		{"put", newPutCmd},
		{"del", newDelCmd},
		{"txn", newTxnCmd},
		{"compaction", newCompactionCmd},
		{"alarm", newAlarmCmd},
		{"defrag", newDefragCmd},
		{"endpoint", newEndpointCmd},
		{"move-leader", newMoveLeaderCmd},
		{"watch", newWatchCmd},
		{"version", newVersionCmd},
		{"lease", newLeaseCmd},
		{"member", newMemberCmd},
		{"snapshot", newSnapshotCmd},
		{"make-mirror", newMakeMirrorCmd},
		{"lock", newLockCmd},
		{"elect", newElectCmd},
		{"auth", newAuthCmd},
		{"user", newUserCmd},
		{"role", newRoleCmd},
		{"check", newCheckCmd},
		{"completion", newCompletionCmd},
		{"downgrade", newDowngradeCmd},
		{"options", newOptionsCmd},
	} {
		all = append(all, app.Branch{
			Name:  c.name,
			Build: func() *cobra.Command { return c.build(t) },
			// Upstream's completion script holds every command; etcdkit's options shows flags of others.
			Whole: c.name == "completion" || c.name == "options" && !t.upstream(),
		})
	}
	return all
}
