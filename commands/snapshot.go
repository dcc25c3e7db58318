package commands

import (
	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
)

// snapshotCommands are the subcommands of snapshot that deal with
// repositories.
func snapshotCommands(a *app.App) []*cobra.Command {
	return []*cobra.Command{
		newSnapshotSaveCmd(a),
		newSnapshotListCmd(a),
		newSnapshotShowCmd(a),
		newSnapshotVerifyCmd(a),
		newSnapshotPruneCmd(a),
		newSnapshotCopyCmd(a),
		newSnapshotAgeCmd(a),
		newSnapshotCheckStoreCmd(a),
	}
}
