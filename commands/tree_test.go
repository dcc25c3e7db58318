package commands

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/internal/cli"
)

// A command line that begins with a command's name builds that command alone:
// nobody may see that.
func TestACommandBuiltAloneIsTheOneOfTheWholeTree(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"etcdkit", "etcdctl"} {
		for _, cmd := range Tree(name, &cli.Env{}).Commands() {
			alone := programFor(name, &cli.Env{}, []string{cmd.Name()}).root
			whole := cmd.Name() == "completion" || cmd.Name() == "options" && name == "etcdkit"
			if n := len(alone.Commands()); n != 1 && !whole {
				t.Errorf("%s %s: %d commands were built", name, cmd.Name(), n)
			}
			for _, sub := range append(cmd.Commands(), cmd) {
				path := strings.Fields(sub.CommandPath())[1:]
				got := told(t, name, append(path, "--help")...)
				want := told(t, name, append([]string{"help"}, path...)...)
				if got != want {
					t.Errorf("%s: the help of the command alone differs from that in the whole tree:\n%s\nwant:\n%s", sub.CommandPath(), got, want)
				}
			}
		}
	}
}

// What etcdctl understands, etcdkit understands alike. Its help command is one
// of cobra's own.
func TestUpstreamsAbbreviationsKeepTheirMeaning(t *testing.T) {
	t.Parallel()
	ours := Tree("etcdkit", &cli.Env{})
	var check func(theirs *cobra.Command)
	check = func(theirs *cobra.Command) {
		path := strings.Fields(theirs.CommandPath())[1:]
		for _, sub := range theirs.Commands() {
			for n := 1; n <= len(sub.Name()); n++ {
				words := append(slices.Clone(path), sub.Name()[:n])
				want, _, err := sub.Root().Find(words)
				if err != nil || want != sub {
					continue
				}
				got, _, err := ours.Find(words)
				if err != nil || strings.TrimPrefix(got.CommandPath(), "etcdkit") != strings.TrimPrefix(want.CommandPath(), "etcdctl") {
					if strings.Join(words, " ") != "snapshot s" { // etcdutl's snapshot status
						t.Errorf("%q: got %v, %v, want %q", words, got, err, want.CommandPath())
					}
				}
			}
			check(sub)
		}
	}
	cobra.EnablePrefixMatching = true
	check(Tree("etcdctl", &cli.Env{}))
}

// told returns what a command line prints.
func told(t *testing.T, name string, line ...string) string {
	t.Helper()
	var out bytes.Buffer
	root := programFor(name, &cli.Env{Out: &out, Err: &out}, line).root
	root.SetOut(&out)
	root.SetArgs(line)
	if err := root.ExecuteContext(t.Context()); err != nil || out.Len() == 0 {
		t.Fatalf("%s %q: %v\n%s", name, line, err, out.String())
	}
	return out.String()
}
