package commands

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/completions"
)

// completionTimeout bounds what a prompt may wait for.
const completionTimeout = time.Second

// ask is one question to the cluster that completes what was typed.
type ask func(ctx context.Context, c completions.Cluster, typed string) ([]string, error)

// completeLive makes shells complete what only the cluster or the configuration
// file knows.
func completeLive(a *app.App, root *cobra.Command) {
	endpoints := func(ctx context.Context, c completions.Cluster, _ string) ([]string, error) {
		return completions.Endpoints(ctx, c)
	}
	members := func(ctx context.Context, c completions.Cluster, _ string) ([]string, error) {
		return completions.Members(ctx, c)
	}
	for _, path := range [][]string{{"get"}, {"put"}, {"del"}, {"watch"}} {
		completeArg(a, at(root, path...), completions.Keys)
	}
	for _, path := range [][]string{{"member", "remove"}, {"member", "update"}, {"member", "promote"}, {"member", "replace"}, {"move-leader"}} {
		completeArg(a, at(root, path...), members)
	}
	if cmd := at(root, "defrag-all"); cmd != nil {
		app.Complete(cmd, "members", liveCompletion(a, members))
	}
	app.Complete(root, "endpoints", liveCompletion(a, endpoints))
	app.Complete(root, "context", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		if err := a.Global.Fill(cmd.Flags(), a.Env); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return slices.Sorted(maps.Keys(a.Global.File.Contexts)), cobra.ShellCompDirectiveNoFileComp
	})
}

// completeArg completes the first argument of cmd, where the tree has it.
func completeArg(a *app.App, cmd *cobra.Command, question ask) {
	if cmd == nil {
		return
	}
	live := liveCompletion(a, question)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return live(cmd, args, typed)
	}
}

// liveCompletion asks the cluster, for a second at most, and offers nothing
// when that fails.
func liveCompletion(a *app.App, question ask) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		if err := a.Global.Fill(cmd.Flags(), a.Env); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		client, err := a.Client(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer client.Close()
		words, err := question(ctx, client, typed)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if slices.ContainsFunc(words, func(w string) bool { return strings.HasSuffix(w, "/") }) {
			return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace // there is more below
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}
