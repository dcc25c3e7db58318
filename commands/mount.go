package commands

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/commands/utl"
)

// mount adds native subcommands to a group, which may be one of etcdctl's.
func mount(a *app.App, root *cobra.Command, group, short string, subs ...*cobra.Command) {
	i := slices.IndexFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == group })
	if i < 0 {
		root.AddCommand(a.Group(group, short, subs...))
		return
	}
	root.Commands()[i].AddCommand(subs...)
}

// defragFiles lets defrag work on a data directory too.
func defragFiles(a *app.App, root *cobra.Command) {
	for _, c := range root.Commands() {
		if c.Name() == "defrag" {
			utl.WithDataDir(a, c)
		}
	}
}
