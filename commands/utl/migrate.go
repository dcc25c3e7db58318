package utl

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/output"
	"github.com/etcdkit/etcdkit/snapshot"
)

const migrateHelp = `Changes the storage version of a data directory that no etcd uses, so that
another version of etcd can start on it. Going down lowers the version of the
cluster too, and is refused where the log holds entries that the older version
does not know or panics on; --force sets the storage version anyway and changes
nothing else. Every member must be migrated.

Exit codes: 0 done, 1 failed, 2 wrong usage.`

type migrateOptions struct {
	dataDir, walDir, target string
	force                   bool
}

func newMigrateCmd(t *tree) *cobra.Command {
	var o migrateOptions
	cmd := &cobra.Command{
		Use: "migrate", Short: "Migrates schema of etcd data dir files to make them compatible with different etcd version",
		RunE: t.run(func(ctx context.Context, _ []string) error { return runMigrate(ctx, t, o) }),
	}
	fs := cmd.Flags()
	fs.StringVar(&o.dataDir, "data-dir", "", "Path to the etcd data dir")
	fs.StringVar(&o.target, "target-version", "", `Target etcd version to migrate contents of data dir. Minimal value 3.5. Format "X.Y" for example 3.6.`)
	t.require(cmd, "data-dir", "target-version")
	app.Must(cmd.MarkFlagDirname("data-dir"))
	if t.upstream() { // natively it is one of the global flags
		fs.BoolVar(&o.force, "force", false, "Ignore migration failure and forcefully override storage version. Not recommended.")
	} else {
		fs.StringVar(&o.walDir, "wal-dir", "", "WAL directory, if it is not in the data directory")
		app.Must(cmd.MarkFlagDirname("wal-dir"))
	}
	return t.native(cmd, migrateHelp, "  etcdkit migrate --data-dir /var/lib/etcd --target-version 3.6", cobra.NoArgs)
}

func runMigrate(ctx context.Context, t *tree, o migrateOptions) error {
	for flag, value := range map[string]string{"data-dir": o.dataDir, "target-version": o.target} {
		if err := missing(flag, value); err != nil && !t.upstream() {
			return err
		}
	}
	target, err := snapshot.ParseTarget(o.target)
	if err != nil {
		if t.upstream() {
			return &codeError{exitBadArgs, err}
		}
		return cli.Usage(err)
	}
	m, err := snapshot.Migrate(ctx, snapshot.MigrateOptions{
		DataDir: o.dataDir, WALDir: o.walDir, Target: target, Bootable: !t.upstream(), Force: o.force || t.Global.Force, Wait: t.lockWait, Log: t.log(),
	})
	if err != nil || t.upstream() {
		return err
	}
	if m.Forced != nil {
		t.Warn("the version was set by force: %v", m.Forced)
	}
	return t.print(output.Result{
		JSON: migrated{DataDir: o.dataDir, From: m.From, To: m.To, Cluster: m.Cluster, Forced: m.Forced != nil},
		Simple: func(w io.Writer) {
			fmt.Fprintf(w, "storage version of %s: %s before, %s now\n", o.dataDir, m.From, m.To)
			if m.Cluster != "" {
				fmt.Fprintf(w, "cluster version: %s before, %s now\n", m.Cluster, m.To)
			}
		},
	})
}

type migrated struct {
	DataDir string `json:"dataDir"`
	From    string `json:"from"`
	To      string `json:"to"`
	Cluster string `json:"clusterVersionBefore"` // "" where it was left
	Forced  bool   `json:"forced"`
}
