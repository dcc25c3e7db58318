package commands

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
)

// mutating are the commands that change a cluster, with how many of their
// arguments the journal may hold: keys, members and names, but no values and
// no passwords ("user add NAME:PASSWORD").
func mutating() map[string]int {
	return map[string]int{
		"put": 1, "del": 2, "txn": 0, "compaction": 1, "make-mirror": 0,
		"lease grant": 1, "lease revoke": 1,
		"defrag": 0, "defrag-all": 0, "alarm disarm": 0, "check perf": 0, "check datascale": 0, "alarm recover": 0,
		"member add": 1, "member remove": 1, "member update": 1, "member promote": 1, "member replace": 1,
		"move-leader": 1, "downgrade enable": 1, "downgrade cancel": 0,
		"auth enable": 0, "auth disable": 0,
		"user add": 0, "user passwd": 0, "user delete": 1, "user grant-role": 2, "user revoke-role": 2,
		"role add": 1, "role delete": 1, "role grant-permission": 4, "role revoke-permission": 3,
	}
}

// markMutating marks those of them that the tree has.
func markMutating(root *cobra.Command) {
	for path, arguments := range mutating() {
		if cmd := at(root, strings.Fields(path)...); cmd != nil {
			app.Mutates(cmd, arguments)
		}
	}
}
