package ctl

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/output"
)

// tree is what the commands of one program share.
type tree struct {
	*app.App
	cmd      *cobra.Command // the one that runs, nil before
	printing printing

	visited   map[string]uint64 // with --cluster: who has to answer at which endpoint
	unvisited int               // with --cluster: members whose URL is another's, too
}

func (t *tree) upstream() bool { return t.Dialect == cli.Upstream }

// run adapts fn to cobra in either dialect. What fails before it is told by
// cobra under upstream's name, what fails in it by report.
func (t *tree) run(fn func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		t.cmd = cmd
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		return app.Unread(t.runIn(cmd, args, fn))
	}
}

// runIn calls fn by the manners of the dialect. Under upstream's name a signal
// ends a command without a word, unless the command has one for it.
func (t *tree) runIn(cmd *cobra.Command, args []string, fn func(context.Context, []string) error) error {
	if !t.upstream() {
		return t.Run(fn)(cmd, args)
	}
	err := fn(cmd.Context(), args)
	if _, coded := errors.AsType[*codeError](err); coded || err == nil {
		return err
	}
	if cause := context.Cause(cmd.Context()); cli.Signal(cause) != 0 {
		return cause
	}
	return err
}

// group returns a command that only holds others. Under upstream's name an
// unknown subcommand shows the help and succeeds, else it is wrong usage.
func (t *tree) group(use, short, long, groupID string, subs ...*cobra.Command) *cobra.Command {
	if t.upstream() {
		c := &cobra.Command{Use: use, Short: short, Long: long, GroupID: groupID}
		c.AddCommand(subs...)
		return c
	}
	c := t.Group(use, long, subs...)
	c.GroupID = groupID
	return c
}

// offer declares the formats that cmd has beyond simple, json and yaml, where
// formats are refused before anything is sent. A command that only says what it
// did, for which upstream ignores --write-out, names none and has table too.
func (t *tree) offer(cmd *cobra.Command, more ...output.Format) *cobra.Command {
	switch {
	case !t.Dialect.RefusesEarly():
		return cmd
	case len(more) == 0:
		return app.Formats(cmd, output.Standard()...)
	}
	return app.Formats(cmd, append([]output.Format{output.Simple, output.JSON, output.YAML}, more...)...)
}

// tooMany refuses arguments beyond the first n, which upstream ignores.
func (t *tree) tooMany(args []string, n int) error {
	if t.Dialect.IgnoresExtraArguments() || len(args) <= n {
		return nil
	}
	return cli.Usagef("%s takes %d arguments at most, not %d", t.cmd.CommandPath(), n, len(args))
}

// Exit codes of etcdctl. Natively they are the kinds of codeError.Unwrap.
const (
	exitError         = 1
	exitBadConnection = 2
	exitInvalidInput  = 3
	exitBadFeature    = 4
	exitInterrupted   = 5
	exitBadArgs       = 128
)

// codeError is an error whose exit code upstream has chosen.
type codeError struct {
	code int
	err  error
}

func (e *codeError) Error() string { return e.err.Error() }

// ExitCode implements app.ExitCoder.
func (e *codeError) ExitCode() int { return e.code }

// Unwrap also tells the kind of the error in the native dialect.
func (e *codeError) Unwrap() []error {
	switch e.code {
	case exitBadArgs, exitInvalidInput, exitBadFeature:
		return []error{e.err, cli.ErrUsage}
	}
	return []error{e.err}
}

// code is the short form of a codeError with new words.
func code(code int, format string, args ...any) error {
	return &codeError{code, fmt.Errorf(format, args...)}
}

// badArgs is the commonest codeError: wrong arguments.
func badArgs(format string, args ...any) error { return code(exitBadArgs, format, args...) }

// errTold is for failures that the user has been told of already.
var errTold = errors.New("already told")

// report tells err to etcdctl's user, unless cobra has, and returns the exit code.
func (t *tree) report(err error) int {
	return t.ReportUpstream(err, t.cmd == nil || errors.Is(err, errTold))
}

// long picks the long help text of the dialect.
func (t *tree) long(upstream, native string) string {
	if t.upstream() {
		return upstream
	}
	return native
}
