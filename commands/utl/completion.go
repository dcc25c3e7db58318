package utl

import (
	"context"

	"github.com/spf13/cobra"
)

// newCompletionCmd is upstream's only: the etcdkit tree has one of its own.
func newCompletionCmd(t *tree) *cobra.Command {
	return &cobra.Command{
		Use: "completion [bash|zsh|fish|powershell]", Short: "Generate completion script",
		DisableFlagsInUseLine: true,
		ValidArgs:             []string{"bash", "zsh", "fish", "powershell"},
		Args:                  cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: t.run(func(_ context.Context, args []string) error {
			root := t.cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletion(t.Out)
			case "zsh":
				return root.GenZshCompletion(t.Out)
			case "fish":
				return root.GenFishCompletion(t.Out, true)
			default:
				return root.GenPowerShellCompletionWithDesc(t.Out)
			}
		}),
	}
}
