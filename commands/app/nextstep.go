package app

import (
	"regexp"
	"strings"

	"github.com/etcdkit/etcdkit/internal/cli"
)

// connecting are the commands that reach a cluster by the connection flags.
const connecting = `alarm|auth|check|compaction|defrag|defrag-all|del|downgrade|elect|endpoint|get|health|lease|lock|make-mirror|` +
	`member|move-leader|put|role|snapshot save|txn|user|watch`

// NextStep returns text with every command in it that reaches a cluster
// completed by the connection flags of this run, so that it reaches the same
// cluster when it is pasted. It is the one place that does so: hints, notes and
// reports pass through it on their way to the user.
func (a *App) NextStep(text string) string {
	if a.Dialect != cli.Native || !strings.Contains(text, "etcdkit ") {
		return text
	}
	args := a.Global.ConnectionArgs()
	if len(args) == 0 {
		return text
	}
	flags := strings.ReplaceAll(cli.ShellLine(args...), "$", "$$")
	command := regexp.MustCompile(`\betcdkit (` + connecting + `)($|[^\w-])`)
	return command.ReplaceAllString(text, "etcdkit "+flags+" $1$2")
}
