// Package ctl holds etcdctl's commands, each once, for two dialects: upstream's
// under the name etcdctl, and etcdkit's own in its tree.
package ctl

import (
	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/cli"
)

// New returns the etcdctl tree and what reports its errors.
func New(env *cli.Env) (*cobra.Command, func(error) int) {
	a := app.New("etcdctl", cli.Upstream, env)
	root := &cobra.Command{
		Use: "etcdctl", Short: "A simple command line client for etcd3.",
		SuggestFor: []string{"etcdctl"},
	}
	a.Global.Bind(root.PersistentFlags(), a.Dialect)
	return root, a.Report
}

// Native returns etcdctl's commands for the etcdkit tree.
func Native(*app.App) []*cobra.Command { return nil }
