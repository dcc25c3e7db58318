package app

import (
	"slices"

	"github.com/spf13/cobra"
)

// A Branch is a command below a root, which is built when it is needed: all of
// them together are a fifth of the time in which a short command ends.
type Branch struct {
	Name  string // of the command
	Group string // on the root's help page, where the command does not name one
	Build func() *cobra.Command
	Whole bool // the command works on the whole tree
}

// Grow builds the branches that a command line needs, and adds them to root: the
// one that the line begins with, or all where it begins with something else,
// such as a flag, an abbreviation or a request for help.
func Grow(root *cobra.Command, all []Branch, line []string) {
	for _, b := range needed(all, line) {
		cmd := b.Build()
		if b.Group != "" {
			cmd.GroupID = b.Group
		}
		root.AddCommand(cmd)
	}
}

func needed(all []Branch, line []string) []Branch {
	if len(line) == 0 {
		return all
	}
	i := slices.IndexFunc(all, func(b Branch) bool { return b.Name == line[0] })
	if i < 0 || all[i].Whole {
		return all
	}
	return all[i : i+1]
}
