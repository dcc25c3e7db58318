//go:build !windows

package parity_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/testing/parity"
)

// unreachableBound is long enough for a command to end by the timeouts that
// unreachable gives it.
const unreachableBound = 2 * time.Second

// unreachable makes lines that need a server fail, or run on, soon.
func unreachable(lines []parity.Line) []parity.Line {
	for i := range lines {
		lines[i].Args = append(lines[i].Args, "--dial-timeout=300ms", "--command-timeout=300ms")
		lines[i].Bound = unreachableBound
	}
	return lines
}

func etcdctlTree(t *testing.T, p parity.Programs) parity.Command {
	t.Helper()
	tree, err := parity.Tree(t.Context(), filepath.Join(p.Upstream, "etcdctl"), "etcdctl")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(tree.All()); n < 60 {
		t.Fatalf("found only %d commands in etcdctl's help", n)
	}
	return tree
}

func TestEtcdctlHelpAndAbbreviations(t *testing.T) {
	t.Parallel()
	p := programs(t)
	var lines []parity.Line
	for _, c := range etcdctlTree(t, p).All() {
		lines = append(lines, c.HelpLines()...)
		switch {
		case len(c.Path) == 2:
			lines = append(lines, c.AbbreviationLines(2)...)
		case len(c.Path) == 3 && wholeMatrix:
			lines = append(lines, c.AbbreviationLines(2)...)
		}
	}
	lines = append(lines, parity.Lines(
		"etcdctl", "etcdctl nosuch", "etcdctl gte", "etcdctl help nosuch", "etcdctl help member nosuch", "etcdctl options", "etcdctl options a", "etcdctl version",
		"etcdctl version a", "etcdctl version -w json", "etcdctl version -w bogus", "etcdctl --version", "etcdctl -w", "etcdctl -w json",
		"etcdctl completion", "etcdctl completion tcsh", "etcdctl completion bash zsh",
		"etcdctl completion bash", "etcdctl completion zsh", "etcdctl completion fish", "etcdctl completion powershell",
		"etcdctl __complete ''", "etcdctl __complete get --", "etcdctl __complete member ''", "etcdctl __complete -w ''", "etcdctl __complete check perf --load ''", "etcdctl __completeNoDesc user ''",
	)...)
	parity.Scenario{Lines: lines}.Run(t, p, wanted())
}

func TestEtcdctlWrongUsage(t *testing.T) {
	t.Parallel()
	p := programs(t)
	var lines []parity.Line
	for _, c := range etcdctlTree(t, p).All() {
		lines = append(lines, c.UsageLines()...)
		if len(c.Subs) == 0 && !standsAlone(c) {
			lines = append(lines, argumentCounts(c)...)
		}
	}
	parity.Scenario{Lines: unreachable(lines)}.Run(t, p, wanted())
}

// standsAlone are commands that need no server; check perf runs for a minute.
func standsAlone(c parity.Command) bool {
	switch c.Path[1] {
	case "version", "options", "completion", "help", "check":
		return true
	}
	return false
}

// argumentCounts gives a command from no argument to one too many, and formats
// that it may not know.
func argumentCounts(c parity.Command) []parity.Line {
	var lines []parity.Line
	line := func(words ...string) {
		lines = append(lines, parity.Line{Args: append(append([]string{}, c.Path...), words...)})
	}
	for n := range 4 {
		line(strings.Fields(strings.Repeat("1 ", n))...)
	}
	line("1", "-w", "bogus")
	line("1", "read", "1", "-w", "table")
	line("", "")
	return lines
}
