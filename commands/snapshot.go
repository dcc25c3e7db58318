package commands

import (
	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/commands/utl"
)

// newSnapshotCmd is the group that holds a backup's life.
func newSnapshotCmd(a *app.App) *cobra.Command {
	cmd := a.Group("snapshot", "Take, keep, prove and restore backups",
		newSnapshotSaveCmd(a),
		newSnapshotListCmd(a),
		newSnapshotShowCmd(a),
		newSnapshotVerifyCmd(a),
		newSnapshotPruneCmd(a),
		newSnapshotCopyCmd(a),
		newSnapshotAgeCmd(a),
		newSnapshotCheckStoreCmd(a),
	)
	cmd.AddCommand(utl.NativeSnapshot(a, &restoreSources{a: a})...)
	return cmd
}
