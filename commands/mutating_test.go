package commands

import (
	"strings"
	"testing"

	"github.com/etcdkit/etcdkit/internal/cli"
)

// A command that is renamed must not leave the journal without a word.
func TestEveryCommandThatTheJournalNamesExists(t *testing.T) {
	t.Parallel()
	root := Tree("etcdkit", &cli.Env{})
	for path := range mutating() {
		cmd, rest, err := root.Find(strings.Fields(path))
		if err != nil || len(rest) > 0 || cmd.CommandPath() != "etcdkit "+path {
			t.Errorf("%s: no such command", path)
		}
	}
}
