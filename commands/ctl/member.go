package ctl

import "github.com/spf13/cobra"

func newMemberCmd(t *tree) *cobra.Command {
	return t.group("member <subcommand>", "Membership related commands. Use `etcdctl member --help` to see subcommands", "Membership related commands", groupMaintenance,
		newMemberListCmd(t))
}
