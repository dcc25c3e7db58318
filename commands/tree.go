package commands

import (
	"slices"

	"github.com/spf13/cobra"
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

// extend adds what is native to a command of etcdctl's, where the tree has it.
func extend(root *cobra.Command, name string, with func(*cobra.Command)) {
	if cmd := at(root, name); cmd != nil {
		with(cmd)
	}
}
