package commands

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
)

// at returns the command whose names from the root down are these, nil where
// the tree has none. Root.Find would parse flags for it, and with that made up
// half the time in which the tree is built.
func at(root *cobra.Command, names ...string) *cobra.Command {
	cmd := root
	for _, name := range names {
		i := slices.IndexFunc(cmd.Commands(), func(c *cobra.Command) bool { return c.Name() == name })
		if i < 0 {
			return nil
		}
		cmd = cmd.Commands()[i]
	}
	return cmd
}

// mount adds native subcommands to a group, which may be one of etcdctl's.
func mount(a *app.App, root *cobra.Command, group, short string, subs ...*cobra.Command) {
	if cmd := at(root, group); cmd != nil {
		cmd.AddCommand(subs...)
		return
	}
	root.AddCommand(a.Group(group, short, subs...))
}
