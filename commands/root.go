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
}

// Main runs the program that args[0] names and returns its exit code.
func Main(ctx context.Context, args []string, env *cli.Env) int {
	p := programFor(args[0], env)
	cobra.EnablePrefixMatching = true // "mem li" for "member list", as upstream
	p.root.SetArgs(args[1:])
	cmd, err := p.root.ExecuteContextC(ctx)
	return p.report(cmd.CommandPath(), err)
}

func programFor(argv0 string, env *cli.Env) program {
	switch strings.TrimSuffix(filepath.Base(argv0), ".exe") {
	case "etcdctl":
		root, report := ctl.New(env)
		return program{root, anywhere(report)}
	case "etcdutl":
		root, report := utl.New(env)
		return program{root, anywhere(report)}
	}
	a := app.New("etcdkit", cli.Native, env)
	return program{newRoot(a), a.Report}
}

// anywhere is a report that does not care which command failed, as upstream's.
func anywhere(report func(error) int) func(string, error) int {
	return func(_ string, err error) int { return report(err) }
}

// Tree returns the command tree of a program, for documentation.
func Tree(name string, env *cli.Env) *cobra.Command { return programFor(name, env).root }

// newRoot returns the etcdkit tree.
func newRoot(a *app.App) *cobra.Command {
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
	root.AddCommand(ctl.Native(a)...)
	root.AddCommand(grouped(groupBackup, append(utl.Native(a), newDBCmd(a))...)...)
	root.AddCommand(grouped(groupCluster, newHealthCmd(a), newDefragAllCmd(a))...)
	root.AddCommand(grouped(groupBackup, a.Group("snapshot", "Take, keep, prove and restore backups", snapshotCommands(a)...))...)
	root.AddCommand(grouped(groupProof, newDiskCmd(a), newSecretsCmd(a))...)
	root.AddCommand(grouped(groupSelf, newPlaygroundCmd(a), newConfigCmd(a))...)
	mount(a, root, "check", "Check properties of the cluster", newCheckConsistencyCmd(a))
	mount(a, root, "alarm", "Alarm related commands", newAlarmRecoverCmd(a))
	mount(a, root, "member", "Membership related commands", newMemberReplaceCmd(a))
	mount(a, root, "snapshot", "Take, keep, prove and restore backups", utl.NativeSnapshot(a, &restoreSources{a: a})...)
	utl.WithDataDir(a, at(root, "defrag"))
	markMutating(root)
	hideGlobals(a, root)
	completeLive(a, root)
	return root
}
