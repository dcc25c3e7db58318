package ctl

import "github.com/spf13/cobra"

// clusterCommands are the commands that deal with members, users and the tool
// itself.
func clusterCommands(t *tree) []*cobra.Command {
	all := []*cobra.Command{
		newAlarmCmd(t),
		newDefragCmd(t),
		newEndpointCmd(t),
		newMoveLeaderCmd(t),
		newVersionCmd(t),
		newMemberCmd(t),
		newAuthCmd(t),
		newUserCmd(t),
		newRoleCmd(t),
		newCheckCmd(t),
		newCompletionCmd(t),
		newDowngradeCmd(t),
		newOptionsCmd(t),
	}
	if t.upstream() {
		all = append(all, newSnapshotCmd(t))
	}
	return all
}
