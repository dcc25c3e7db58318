package ctl

import (
	"context"
	"fmt"
	"strings"

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
			_, err := fmt.Fprintf(t.Out, "The following options can be passed to any command:\n\n%s", shown(t.cmd.Root().PersistentFlags()).FlagUsagesWrapped(t.Width))
			if err != nil || t.upstream() {
				return err
			}
			_, err = fmt.Fprintf(t.Out, "\nThese to commands that work with a bucket:\n\n%s", bucketFlags(t.cmd.Root()).FlagUsagesWrapped(t.Width))
			return err
		}),
	}
	if !t.upstream() {
		cmd.Long = `Shows the settings that all commands share, and those of all commands that work
with a bucket: flags, each of which has a variable ETCDKIT_NAME and a key in the
configuration file unless it widens what a command does.

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

// bucketFlags returns the flags that tell how to reach a bucket, as one of the
// commands that work with one has them.
func bucketFlags(root *cobra.Command) *pflag.FlagSet {
	all := pflag.NewFlagSet("bucket", pflag.ContinueOnError)
	if cmd, _, err := root.Find([]string{"snapshot", "save"}); err == nil {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if strings.HasPrefix(f.Name, "s3-") {
				all.AddFlag(f)
			}
		})
	}
	return all
}
