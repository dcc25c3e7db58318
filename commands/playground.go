package commands

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/etcd"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/kube/sample"
	"github.com/etcdkit/etcdkit/internal/output"
)

// childGrace is how long a command may take to end after a signal before it is
// killed.
const childGrace = 10 * time.Second

// playgroundObjects is how many objects --kubernetes writes: enough for every
// kind and every encryption, few enough to take no time.
const playgroundObjects = 3000

type playgroundOptions struct {
	members    int
	kubernetes bool
}

func newPlaygroundCmd(a *app.App) *cobra.Command {
	var opts playgroundOptions
	cmd := &cobra.Command{
		Use:   "playground [-- COMMAND [ARG...]]",
		Short: "Run a throwaway etcd cluster on this machine",
		Long: `Starts etcd members inside this process, on free loopback ports and in a
temporary folder, and waits for Ctrl-C; nothing stays behind.

--kubernetes fills it with objects as a Kubernetes control plane stores them, some
Secrets in clear, some encrypted.

With a command, runs it against the cluster and stops when it ends. The command
sees no ETCDKIT_ or ETCDCTL_ variable of yours, only the playground's endpoints,
so a trial never reaches a real cluster.

Exit codes: 0 stopped by Ctrl-C; 1 the cluster did not start; 2 wrong usage; with
a command, its own code.`,
		Example: "  etcdkit playground --members 3\n  etcdkit playground -- etcdkit put greeting hello",
		Args:    argsAfterDash,
		RunE:    a.Run(func(ctx context.Context, args []string) error { return runPlayground(ctx, a, opts, args) }),
	}
	cmd.Flags().IntVar(&opts.members, "members", 1, fmt.Sprintf("number of members, 1 to %d", embedded.MaxMembers))
	cmd.Flags().BoolVar(&opts.kubernetes, "kubernetes", false, fmt.Sprintf("fill it with %d objects as Kubernetes stores them", playgroundObjects))
	return cmd
}

// argsAfterDash accepts arguments only after a "--".
func argsAfterDash(cmd *cobra.Command, args []string) error {
	if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
		return hint.With(fmt.Errorf("unexpected argument %q", args[0]), "a command to run comes after \"--\"")
	}
	return nil
}

func runPlayground(ctx context.Context, a *app.App, opts playgroundOptions, command []string) (err error) {
	if opts.members < 1 || opts.members > embedded.MaxMembers {
		return cli.Usagef("--members %d: from 1 to %d are possible", opts.members, embedded.MaxMembers)
	}
	cluster, err := embedded.Start(ctx, embedded.Options{Members: opts.members})
	if err != nil {
		return fmt.Errorf("playground: %w", err)
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	for _, l := range cluster.LeftAlone {
		a.Warn("%s", l)
	}
	if opts.kubernetes {
		if err := fillPlayground(ctx, cluster.Endpoints()); err != nil {
			return fmt.Errorf("playground: %w", err)
		}
	}
	if len(command) > 0 {
		return runAgainst(ctx, a, cluster, command)
	}
	endpoints := strings.Join(cluster.Endpoints(), ",")
	fmt.Fprintf(a.Out, "%d-member etcd cluster in %s\n\n  export ETCDKIT_ENDPOINTS=%s\n  etcdkit health\n\nCtrl-C stops it and removes everything.\n",
		opts.members, cluster.Dir(), endpoints)
	select {
	case <-ctx.Done():
		return nil
	case <-cluster.Failed():
		return fmt.Errorf("playground: %w", cluster.Err())
	}
}

// fillPlayground writes what a Kubernetes control plane would.
func fillPlayground(ctx context.Context, endpoints []string) (err error) {
	objects, err := sample.Objects(playgroundObjects, 1)
	if err != nil {
		return err
	}
	client, err := etcd.Dial(ctx, etcd.Config{Endpoints: endpoints})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	return sample.Fill(ctx, client, objects)
}

// runAgainst runs command with the cluster's endpoints in its environment.
func runAgainst(ctx context.Context, a *app.App, cluster *embedded.Cluster, command []string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.In, output.Unguarded(a.Out), output.Unguarded(a.Err)
	cmd.Env = playgroundEnv(a.Environ, cluster.Endpoints())
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = childGrace
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() >= 0 {
		return &cli.ChildExit{Code: exit.ExitCode()}
	}
	if err != nil {
		return fmt.Errorf("playground: run %s: %w", command[0], err)
	}
	return nil
}

// playgroundEnv replaces every inherited variable of etcdkit and etcdctl by the
// playground's endpoints.
func playgroundEnv(inherited, endpoints []string) []string {
	var env []string
	for _, kv := range inherited {
		if !strings.HasPrefix(kv, "ETCDCTL_") && !strings.HasPrefix(kv, "ETCDKIT_") {
			env = append(env, kv)
		}
	}
	joined := strings.Join(endpoints, ",")
	return append(env, "ETCDKIT_ENDPOINTS="+joined, "ETCDCTL_ENDPOINTS="+joined)
}
