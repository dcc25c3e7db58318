package commands

import (
	"slices"
	"strings"

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

// keepAbbreviations keeps upstream's, which native names would make ambiguous:
// def is defrag, whatever else begins with it.
func keepAbbreviations(root *cobra.Command) {
	keepAbbreviationsOf(root, "hashkv", "migrate", "db", "health", "defrag-all", "disk", "secrets", "playground", "config")
	for name, native := range map[string][]string{
		"alarm": {"recover"}, "check": {"consistency"}, "member": {"replace"},
		"snapshot": {"age", "check-store", "copy", "list", "prune", "show", "verify"},
	} {
		extend(root, name, func(c *cobra.Command) { keepAbbreviationsOf(c, native...) })
	}
}

func keepAbbreviationsOf(parent *cobra.Command, native ...string) {
	all := parent.Commands()
	for _, cmd := range all {
		if slices.Contains(native, cmd.Name()) {
			continue
		}
		for n := 1; n < len(cmd.Name()); n++ {
			word, upstreams, natives := cmd.Name()[:n], 0, 0
			for _, other := range all {
				switch {
				case !strings.HasPrefix(other.Name(), word):
				case slices.Contains(native, other.Name()):
					natives++
				default:
					upstreams++
				}
			}
			if upstreams == 1 && natives > 0 {
				cmd.Aliases = append(cmd.Aliases, word)
			}
		}
	}
}
