// Package commands is the etcdkit tree: its root, and a file for each native
// command with its views. The commands of etcdctl and etcdutl are mounted from
// the packages ctl and utl.
package commands

import (
	"context"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/commands/ctl"
	"github.com/etcdkit/etcdkit/commands/utl"
	"github.com/etcdkit/etcdkit/internal/cli"
)

// program is one of the programs that this binary can be.
type program struct {
	root   *cobra.Command
	report func(cmd string, err error) int // tells the error of a command to the user, returns the exit code
	// killed says that a signal kills it, as upstream's etcdctl, but where a
	// command heeds one. Otherwise commands end in order.
	killed bool
}

// Main runs the program that args[0] names and returns its exit code.
func Main(ctx context.Context, args []string, env *cli.Env) int {
	p := programFor(args[0], env, args[1:])
	if !cobra.EnablePrefixMatching { // a global that others read meanwhile: set once, at the start
		cobra.EnablePrefixMatching = true // "mem li" for "member list", as upstream
	}
	p.root.SetArgs(args[1:])
	if !p.killed {
		var stop context.CancelFunc
		ctx, stop = env.EndOn(ctx)
		defer stop()
	}
	cmd, err := p.root.ExecuteContextC(ctx)
	return p.report(cmd.CommandPath(), err)
}

// programFor returns the program of a name, as far as a command line needs it.
func programFor(argv0 string, env *cli.Env, line []string) program {
	switch strings.TrimSuffix(filepath.Base(argv0), ".exe") {
	case "etcdctl":
		root, report := ctl.New(env, line)
		return program{root, anywhere(report), true}
	case "etcdutl":
		root, report := utl.New(env)
		return program{root, anywhere(report), false}
	}
	a := app.New("etcdkit", cli.Native, env)
	return program{newRoot(a, line), a.Report, false}
}

// anywhere is a report that does not care which command failed, as upstream's.
func anywhere(report func(error) int) func(string, error) int {
	return func(_ string, err error) int { return report(err) }
}

// Tree returns the whole command tree of a program, for documentation.
func Tree(name string, env *cli.Env) *cobra.Command {
	root := programFor(name, env, nil).root
	if name == "etcdkit" {
		eachCommand(root, moveExamples)
	}
	return root
}

// newRoot returns the etcdkit tree, as far as a command line needs it.
func newRoot(a *app.App, line []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "etcdkit",
		Short: "Everything that people who keep etcd alive need, in one binary",
		Long: "etcdkit runs, backs up, checks and repairs etcd clusters. It has every command of\n" +
			"etcdctl and etcdutl, and is a drop-in for both when it is called by their names.",
		Args:              cobra.NoArgs,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: a.Prepare,
		RunE: a.Run(func(context.Context, []string) error {
			_, err := io.WriteString(a.Out, welcome)
			return err
		}),
	}
	a.Global.Bind(root.PersistentFlags(), a.Dialect)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetIn(a.In)
	root.AddGroup(nativeGroups()...)
	root.AddGroup(ctl.Groups()...)
	root.CompletionOptions.DisableDefaultCmd = true // it has its own
	app.Grow(root, append(ctl.Native(a), branches(a)...), line)
	extend(root, "check", func(c *cobra.Command) { c.AddCommand(newCheckConsistencyCmd(a)) })
	extend(root, "alarm", func(c *cobra.Command) { c.AddCommand(newAlarmRecoverCmd(a)) })
	extend(root, "member", func(c *cobra.Command) { c.AddCommand(newMemberReplaceCmd(a)) })
	extend(root, "defrag", func(c *cobra.Command) { utl.WithDataDir(a, c) })
	keepAbbreviations(root)
	markMutating(root)
	setHelp(a, root)
	completeLive(a, root)
	return root
}

// branches are the commands of the root beside etcdctl's.
func branches(a *app.App) []app.Branch {
	var all []app.Branch
	for _, c := range []struct {
		name, group string
		build       func(*app.App) *cobra.Command
	}{
		{"hashkv", groupBackup, utl.NativeHashKV},
		{"migrate", groupBackup, utl.NativeMigrate},
		{"db", groupBackup, newDBCmd},
		{"snapshot", groupBackup, newSnapshotCmd},
		{"health", groupCluster, newHealthCmd},
		{"defrag-all", groupCluster, newDefragAllCmd},
		{"disk", groupProof, newDiskCmd},
		{"secrets", groupProof, newSecretsCmd},
		{"playground", groupSelf, newPlaygroundCmd},
		{"config", groupSelf, newConfigCmd},
	} {
		all = append(all, app.Branch{Name: c.name, Group: c.group, Build: func() *cobra.Command { return c.build(a) }})
	}
	return all
}
