package commands

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/snapshot"
)

// completeRepository offers the repositories of the configuration file, and
// files and folders to what does not begin like one.
func completeRepository(a *app.App, cmd *cobra.Command, typed string) ([]string, cobra.ShellCompDirective) {
	if typed != "" && !strings.HasPrefix(typed, "@") {
		return nil, cobra.ShellCompDirectiveDefault
	}
	if err := a.Global.Fill(cmd.Flags(), a.Env); err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var words []string
	for _, name := range slices.Sorted(maps.Keys(a.Global.File.Repositories)) {
		words = append(words, "@"+name)
	}
	return words, cobra.ShellCompDirectiveDefault
}

// complete completes a command whose first argument is a repository and whose
// further ones are nothing.
func (f *repoFlags) complete(a *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completeRepository(a, cmd, typed)
	}
}

// completeBackups completes a command whose arguments are repositories, as many
// as given, and then names of backups in the first one.
func (f *repoFlags) completeBackups(a *app.App, repositories int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) < repositories {
			return completeRepository(a, cmd, typed)
		}
		if err := a.Global.Fill(cmd.Flags(), a.Env); err != nil || !isRepository(args[0]) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		repo, err := f.repository(ctx, a, args[0])
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names, err := snapshot.Names(ctx, repo)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		// The shell keeps what fits, and the newest first.
		return append([]string{"latest"}, names...), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}
