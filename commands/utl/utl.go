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
	a := app.New("etcdutl", cli.Upstream, env)
	root := &cobra.Command{
		Use: "etcdutl", Short: "An administrative command line tool for etcd3.",
		SuggestFor: []string{"etcdutl"},
	}
	return root, a.Report
}

// Native returns etcdutl's commands for the etcdkit tree.
func Native(*app.App) []*cobra.Command { return nil }
