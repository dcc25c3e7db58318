package ctl

import "github.com/spf13/cobra"

// clusterCommands are the commands that deal with members, users and the tool
// itself.
func clusterCommands(t *tree) []*cobra.Command {
	return []*cobra.Command{
		newAlarmCmd(t),
		newEndpointCmd(t),
		newMemberCmd(t),
	}
}
