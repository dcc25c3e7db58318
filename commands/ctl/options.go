package ctl

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newOptionsCmd(t *tree) *cobra.Command {
	cmd := &cobra.Command{
		Use: "options", Short: "Show the global command-line flags", GroupID: groupUtility,
		RunE: t.run(func(_ context.Context, args []string) error {
			if err := t.tooMany(args, 0); err != nil {
				return err
			}
			_, err := fmt.Fprintf(t.Out, "The following options can be passed to any command:\n\n%s", shown(t.cmd.Root().PersistentFlags()).FlagUsages())
			return err
		}),
	}
	if !t.upstream() {
		cmd.Long = `Shows the settings that all commands share: flags, each of which has a variable
ETCDKIT_NAME and a key in the configuration file unless it widens what a command
does.

  etcdkit options

Exit codes: 0 shown, 2 wrong usage.`
	}
	return t.offer(cmd)
}

// shown returns a copy of the flags without the mark that hides them.
func shown(hidden *pflag.FlagSet) *pflag.FlagSet {
	all := pflag.NewFlagSet("global", pflag.ContinueOnError)
	hidden.VisitAll(func(f *pflag.Flag) {
		visible := *f
		visible.Hidden = false
		all.AddFlag(&visible)
	})
	return all
}
