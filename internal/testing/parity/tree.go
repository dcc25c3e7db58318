package parity

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// A Command is what upstream's help tells about one of its commands.
type Command struct {
	Path  []string // the program's name first
	Subs  []Command
	Flags []Flag
}

// A Flag is one line of a help page.
type Flag struct {
	Name string
	Type string // "" for a switch
}

// Tree asks the program at path about all of its commands, so that a matrix
// built from it misses none.
func Tree(ctx context.Context, path, name string) (Command, error) {
	return tree(ctx, path, []string{name})
}

func tree(ctx context.Context, program string, path []string) (Command, error) {
	cmd := exec.CommandContext(ctx, program, append(path[1:len(path):len(path)], "--help")...)
	out, err := cmd.Output()
	if err != nil {
		return Command{}, fmt.Errorf("%s --help: %w", strings.Join(path, " "), err)
	}
	c := Command{Path: path}
	names := c.parse(string(out))
	for _, name := range names {
		sub, err := tree(ctx, program, append(path[:len(path):len(path)], name))
		if err != nil {
			return c, err
		}
		c.Subs = append(c.Subs, sub)
	}
	return c, nil
}

// parse reads a help page: its flags, and the names of the subcommands.
func (c *Command) parse(help string) (subs []string) {
	section := ""
	for line := range strings.Lines(help) {
		line = strings.TrimRight(line, "\n")
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
			section = ""
		case !strings.HasPrefix(line, " "):
			section = line
		case section == "Flags:":
			if f, ok := parseFlag(words); ok {
				c.Flags = append(c.Flags, f)
			}
		case section == "Available Commands:", strings.HasSuffix(section, " commands"):
			subs = append(subs, words[0])
		}
	}
	return subs
}

func parseFlag(words []string) (Flag, bool) {
	if len(words) > 1 && strings.HasSuffix(words[0], ",") { // -h, --help
		words = words[1:]
	}
	name, ok := strings.CutPrefix(words[0], "--")
	if !ok {
		return Flag{}, false
	}
	f := Flag{Name: name}
	if len(words) > 1 {
		switch words[1] {
		case "string", "strings", "int", "int32", "int64", "uint", "uint64", "duration":
			f.Type = words[1]
		}
	}
	return f, true
}

// All returns the command and those below it.
func (c Command) All() []Command {
	all := []Command{c}
	for _, sub := range c.Subs {
		all = append(all, sub.All()...)
	}
	return all
}

// line returns the command's line with more words.
func (c Command) line(words ...string) Line {
	return Line{Args: append(append([]string{}, c.Path...), words...)}
}

// HelpLines ask for the help of the command in each way there is.
func (c Command) HelpLines() []Line {
	help := append([]string{c.Path[0], "help"}, c.Path[1:]...)
	return []Line{c.line("--help"), c.line("-h"), {Args: help}}
}

// UsageLines are wrong uses of the command that any command can meet.
func (c Command) UsageLines() []Line {
	lines := []Line{c.line("--no-such-flag"), c.line("--no-such-flag=1", "a"), c.line("-Z")}
	if len(c.Subs) > 0 {
		lines = append(lines, c.line(), c.line("no-such-word"), c.line("no-such-word", "--no-such-flag"))
	}
	for _, f := range c.Flags {
		lines = append(lines, c.line("--"+f.Name+"=not-a-value", "a"))
		if f.Type != "" {
			lines = append(lines, c.line("--"+f.Name), c.line("a", "--"+f.Name))
		}
	}
	return lines
}

// AbbreviationLines shorten the command's last word, ambiguously at first.
func (c Command) AbbreviationLines(letters int) []Line {
	last := len(c.Path) - 1
	var lines []Line
	for n := 1; n <= letters && n < len(c.Path[last]); n++ {
		line := c.line("--help")
		line.Args[last] = c.Path[last][:n]
		lines = append(lines, line)
	}
	return lines
}
