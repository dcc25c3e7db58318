package ctl

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
)

// completionHelp is upstream's page; its commands are the program's own.
const completionHelp = `To load completions:

Bash:

  $ source <(etcdctl completion bash)

  # To load completions for each session, execute once:
  # Linux:
  $ etcdctl completion bash > /etc/bash_completion.d/etcdctl
  # macOS:
  $ etcdctl completion bash > /usr/local/etc/bash_completion.d/etcdctl

Zsh:

  # If shell completion is not already enabled in your environment,
  # you will need to enable it.  You can execute the following once:

  $ echo "autoload -U compinit; compinit" >> ~/.zshrc

  # To load completions for each session, execute once:
  $ etcdctl completion zsh > "${fpath[1]}/_etcdctl"

  # You will need to start a new shell for this setup to take effect.

fish:

  $ etcdctl completion fish | source

  # To load completions for each session, execute once:
  $ etcdctl completion fish > ~/.config/fish/completions/etcdctl.fish

PowerShell:

  PS> etcdctl completion powershell | Out-String | Invoke-Expression

  # To load completions for every new session, run:
  PS> etcdctl completion powershell > etcdctl.ps1
  # and source this file from your PowerShell profile.
`

const nativeCompletionHelp = `Prints what makes a shell complete commands, flags, members, endpoints, contexts,
backups and keys. The packages install it; elsewhere the shell's own start file
loads it, or it is put where the shell looks:

  bash         /etc/bash_completion.d/etcdkit (needs the package bash-completion)
  zsh          _etcdkit in a folder of $fpath, after "autoload -U compinit; compinit"
  fish         ~/.config/fish/completions/etcdkit.fish
  powershell   a file that $PROFILE sources

Exit codes: 0 printed, 2 wrong usage.`

const nativeCompletionExample = `  source <(etcdkit completion bash)
  etcdkit completion zsh > "${fpath[1]}/_etcdkit"
  etcdkit completion fish | source
  etcdkit completion powershell | Out-String | Invoke-Expression`

func newCompletionCmd(t *tree) *cobra.Command {
	cmd := &cobra.Command{
		Use:                   "completion [bash|zsh|fish|powershell]",
		Short:                 "Generate completion script",
		Long:                  strings.ReplaceAll(completionHelp, "etcdctl", t.Name),
		DisableFlagsInUseLine: true,
		ValidArgs:             []string{"bash", "zsh", "fish", "powershell"},
		Args:                  cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE:                  t.run(func(_ context.Context, args []string) error { return runCompletion(t, args[0]) }),
		GroupID:               groupUtility,
	}
	if !t.upstream() {
		cmd.Long, cmd.Example = nativeCompletionHelp, nativeCompletionExample
	}
	return cmd
}

func runCompletion(t *tree, shell string) error {
	root := t.cmd.Root()
	switch shell {
	case "bash":
		if t.upstream() {
			return root.GenBashCompletion(t.Out)
		}
		return root.GenBashCompletionV2(t.Out, true)
	case "zsh":
		return root.GenZshCompletion(t.Out)
	case "fish":
		return root.GenFishCompletion(t.Out, true)
	}
	return root.GenPowerShellCompletionWithDesc(t.Out)
}
