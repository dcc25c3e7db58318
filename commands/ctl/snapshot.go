package ctl

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/client/v3/snapshot"
)

// snapshotExample returns the examples on upstream's help pages.
func snapshotExample() string {
	return "  " + strings.Join([]string{
		"# Save snapshot to a given file",
		"etcdctl snapshot save /backup/etcd-snapshot.db",
		"",
		"# Get snapshot from given address and save it to file",
		"etcdctl snapshot save --endpoints=127.0.0.1:3000 /backup/etcd-snapshot.db",
		"",
		"# Get snapshot from given address with certificates",
		"etcdctl --endpoints=https://127.0.0.1:2379 --cacert=/etc/etcd/ca.crt --cert=/etc/etcd/etcd.crt --key=/etc/etcd/etcd.key snapshot save /backup/etcd-snapshot.db",
		"",
		"# Get snapshot with certain user and password",
		"etcdctl --user=root --password=password123 snapshot save /backup/etcd-snapshot.db",
		"",
		"# Get snapshot from given address with timeout",
		"etcdctl --endpoints=https://127.0.0.1:2379 --dial-timeout=20s snapshot save /backup/etcd-snapshot.db",
		"",
		"# Save snapshot with desirable time format",
		"etcdctl snapshot save /mnt/backup/etcd/backup_$(date +%Y%m%d_%H%M%S).db",
	}, "\n  ")
}

// newSnapshotCmd is etcdctl's snapshot, for upstream's dialect only: natively
// saving is more than a file.
func newSnapshotCmd(t *tree) *cobra.Command {
	save := &cobra.Command{
		Use: "save <filename>", Short: "Stores an etcd node backend snapshot to a given file", Example: snapshotExample(),
		RunE: t.run(func(ctx context.Context, args []string) error { return runSnapshotSave(ctx, t, args) }),
	}
	cmd := t.group("snapshot <subcommand>", "Manages etcd node snapshots", "", groupMaintenance, save)
	cmd.Example = snapshotExample()
	return cmd
}

func runSnapshotSave(ctx context.Context, t *tree, args []string) error {
	if len(args) != 1 {
		return badArgs("snapshot save expects one argument <filename>")
	}
	c, err := t.connection()
	if err != nil {
		return err
	}
	cfg, err := c.Client()
	if err != nil {
		return &codeError{exitBadArgs, err}
	}
	// Without a timeout that someone asked for, saving takes as long as it takes.
	if t.cmd.Flags().Changed("command-timeout") {
		var cancel context.CancelFunc
		ctx, cancel = t.Timeout(ctx)
		defer cancel()
	}
	version, err := snapshot.SaveWithVersion(ctx, t.upstreamLog(), cfg, args[0])
	if err != nil {
		return &codeError{exitInterrupted, err}
	}
	fmt.Fprintf(t.Out, "Snapshot saved at %s\n", args[0])
	if version != "" {
		fmt.Fprintf(t.Out, "Server version %s\n", version)
	}
	return nil
}
