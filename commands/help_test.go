package commands_test

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands"
	"github.com/etcdkit/etcdkit/internal/cli"
)

// screen is how many lines a help page may have.
const screen = 55

// leaves returns the commands that do something themselves.
func leaves(cmd *cobra.Command) []*cobra.Command {
	if !cmd.HasSubCommands() {
		return []*cobra.Command{cmd}
	}
	var all []*cobra.Command
	for _, sub := range cmd.Commands() {
		all = append(all, leaves(sub)...)
	}
	return all
}

func TestEveryHelpPageHasASentenceAnExampleAndExitCodes(t *testing.T) {
	t.Parallel()
	for _, cmd := range leaves(commands.Tree("etcdkit", &cli.Env{})) {
		t.Run(strings.ReplaceAll(cmd.CommandPath(), " ", "-"), func(t *testing.T) {
			if !regexp.MustCompile(`(?s)^[A-Z].*\.`).MatchString(cmd.Long) {
				t.Errorf("no sentence: %q", cmd.Long)
			}
			if !strings.Contains(cmd.Long, "Exit codes: ") {
				t.Errorf("no exit codes: %q", cmd.Long)
			}
			lines := exampleLines(cmd.Example)
			if len(lines) == 0 {
				t.Errorf("no example in %q", cmd.Example)
			}
			for _, line := range lines {
				checkExample(t, line, cmd.CommandPath())
			}
		})
	}
}

// exampleLines returns the command lines of an example, continued ones joined.
// Others are what a command reads.
func exampleLines(example string) []string {
	lines := strings.Split(strings.ReplaceAll(example, "\\\n", " "), "\n")
	return slices.DeleteFunc(lines, func(line string) bool { return !strings.Contains(line, "etcdkit ") })
}

// checkExample fails where an example is not a command line of this tree for
// the command whose help it stands on.
func checkExample(t *testing.T, line, path string) {
	t.Helper()
	_, after, _ := strings.Cut(line, "etcdkit ")
	words := shellWords(after)
	root := commands.Tree("etcdkit", &cli.Env{})
	cmd, rest, err := root.Find(words)
	if err != nil || cmd.CommandPath() != path {
		t.Errorf("example %q is of %q: %v", line, cmd.CommandPath(), err)
		return
	}
	if err := cmd.ParseFlags(rest); err != nil {
		t.Errorf("example %q: %v", line, err)
		return
	}
	if cmd.Args != nil {
		if err := cmd.Args(cmd, cmd.Flags().Args()); err != nil {
			t.Errorf("example %q: %v", line, err)
		}
	}
}

// shellWords takes the first command of a line apart, up to a pipe, a
// redirection or a comment.
func shellWords(line string) []string {
	var words []string
	for _, m := range regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s'"]+|\s+`).FindAllString(line, -1) {
		switch {
		case strings.TrimSpace(m) == "":
			words = append(words, "")
			continue
		case strings.HasPrefix(m, "#"), m == "|", m == "<", m == ">", m == "&&", m == ";", m == ")":
			return trimmed(words)
		case len(words) == 0:
			words = append(words, "")
		}
		words[len(words)-1] += strings.Trim(m, `'"`)
	}
	return trimmed(words)
}

// trimmed drops the empty word that white space at the end leaves.
func trimmed(words []string) []string {
	if n := len(words); n > 0 && words[n-1] == "" {
		words = words[:n-1]
	}
	for i, w := range words {
		words[i] = strings.TrimSuffix(w, ")") // source <(etcdkit ...)
	}
	return words
}

func TestEveryHelpPageFitsAScreen(t *testing.T) {
	t.Parallel()
	for _, leaf := range leaves(commands.Tree("etcdkit", &cli.Env{})) {
		path := leaf.CommandPath()
		t.Run(strings.ReplaceAll(path, " ", "-"), func(t *testing.T) {
			var out bytes.Buffer
			args := append(strings.Fields(path), "--help")
			if code := commands.Main(t.Context(), args, &cli.Env{Out: &out, Err: &out}); code != 0 {
				t.Fatalf("exit code %d: %s", code, out.String())
			}
			if n := bytes.Count(out.Bytes(), []byte("\n")); n > screen {
				t.Errorf("%d lines, want %d at most:\n%s", n, screen, out.String())
			}
			for line := range strings.SplitSeq(leaf.Long+"\n"+leaf.Short, "\n") {
				if len([]rune(line)) > 100 {
					t.Errorf("a line of %d characters: %s", len([]rune(line)), line)
				}
			}
		})
	}
}

func TestFlagsOfAHelpPageAreWrappedAtTheTerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if code := commands.Main(t.Context(), []string{"etcdkit", "snapshot", "restore", "--help"}, &cli.Env{Out: &out, Err: &out, Width: 80}); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	_, flags, _ := strings.Cut(out.String(), "\nFlags:\n")
	for line := range strings.SplitSeq(flags, "\n") {
		if len(line) > 90 {
			t.Errorf("too wide: %s", line)
		}
	}
	if !strings.Contains(out.String(), `"etcdkit options"`) || strings.Contains(flags, "--s3-region") {
		t.Errorf("the settings of a bucket are not left to options:\n%s", flags)
	}
}

func TestOptionsShowsWhatHelpPagesLeaveOut(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if code := commands.Main(t.Context(), []string{"etcdkit", "options"}, &cli.Env{Out: &out, Err: &out}); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	for _, flag := range []string{"--endpoints", "--password-file", "--s3-endpoint", "--s3-retry-for"} {
		if !strings.Contains(out.String(), flag+" ") {
			t.Errorf("no %s in:\n%s", flag, out.String())
		}
	}
}
