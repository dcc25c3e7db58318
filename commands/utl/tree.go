package utl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/output"
	"github.com/etcdkit/etcdkit/internal/progress"
)

// tree is what the commands of one program share.
type tree struct {
	*app.App
	lockWait time.Duration
	cmd      *cobra.Command // the one that runs, nil before
}

func (t *tree) upstream() bool { return t.Dialect == cli.Upstream }

// bindTimeout defines the flag that bounds the wait for a file's lock: for all
// commands under upstream's name, natively for those that open files.
func (t *tree) bindTimeout(fs *pflag.FlagSet) {
	fs.DurationVar(&t.lockWait, "timeout", 10*time.Second, "time to wait to obtain a file lock on db file, 0 to block indefinitely")
}

// native finishes a command for the etcdkit tree: its help, its own flag for
// the lock, the number of its arguments and its formats.
func (t *tree) native(cmd *cobra.Command, long, example string, args cobra.PositionalArgs, more ...output.Format) *cobra.Command {
	if t.upstream() {
		return cmd
	}
	t.bindTimeout(cmd.Flags())
	cmd.Long, cmd.Example, cmd.Args = long, example, args
	return app.Formats(cmd, append(output.Standard(), more...)...)
}

// run adapts fn to cobra in either dialect. What fails before it is told by
// cobra under upstream's name, what fails in it by report.
func (t *tree) run(fn func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		t.cmd = cmd
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		return app.Unread(t.Run(fn)(cmd, args))
	}
}

// Exit codes of etcdutl.
const (
	exitBadFeature = 4
	exitBadArgs    = 128
)

// codeError is an error whose exit code upstream has chosen. Natively it is
// wrong usage.
type codeError struct {
	code int
	err  error
}

func (e *codeError) Error() string { return e.err.Error() }

// ExitCode implements app.ExitCoder.
func (e *codeError) ExitCode() int { return e.code }

// Unwrap also tells the kind of the error in the native dialect.
func (e *codeError) Unwrap() []error { return []error{e.err, cli.ErrUsage} }

// badArgs is wrong usage.
func badArgs(format string, args ...any) error {
	return &codeError{exitBadArgs, fmt.Errorf(format, args...)}
}

// report tells err to etcdutl's user and returns the exit code. What cobra has
// told already is told again, as upstream does.
func (t *tree) report(err error) int { return t.ReportUpstream(err, false) }

// checkFormat refuses an unknown format where upstream does: when the command
// begins, after its arguments.
func (t *tree) checkFormat() error {
	if !t.upstream() {
		return nil
	}
	if !slices.Contains(app.UpstreamFormats(), t.Global.WriteOut) {
		return &codeError{exitBadFeature, errors.New("unsupported output format")}
	}
	t.Format = output.Format(t.Global.WriteOut)
	return nil
}

// print shows a result. Upstream's JSON is one line, and a form that is
// missing an error after the work.
func (t *tree) print(r output.Result) error {
	if t.upstream() && t.Format == output.JSON {
		b, err := json.Marshal(r.JSON)
		if err != nil {
			return fmt.Errorf("print json: %w", err)
		}
		_, err = t.Out.Write(append(b, '\n'))
		return err
	}
	err := t.Print(r)
	if missing, ok := errors.AsType[*output.MissingError](err); ok {
		return &codeError{exitBadFeature, fmt.Errorf("%s not supported as output format", missing.Format)}
	}
	return err
}

// meter shows the progress of a job, natively.
func (t *tree) meter(job string) (update progress.Func, done func()) {
	if t.upstream() || t.Global.Quiet {
		return progress.Discard, func() {}
	}
	m := progress.To(t.Err, t.Live, t.Now, job)
	return m.Update, m.Done
}

// log is the log of what upstream's packages do: on standard error for
// upstream, natively with --debug only.
func (t *tree) log() *zap.Logger {
	if !t.upstream() {
		return t.Logger()
	}
	enc := zapcore.NewConsoleEncoder(zapcore.EncoderConfig{
		TimeKey: "ts", LevelKey: "level", NameKey: "logger", CallerKey: "caller", MessageKey: "msg", StacktraceKey: "stacktrace",
		LineEnding:     zapcore.DefaultLineEnding,
		EncodeLevel:    zapcore.LowercaseLevelEncoder,
		EncodeTime:     zapcore.RFC3339TimeEncoder,
		EncodeDuration: zapcore.StringDurationEncoder,
		EncodeCaller:   zapcore.ShortCallerEncoder,
	})
	return zap.New(zapcore.NewCore(enc, zapcore.AddSync(t.Err), zap.InfoLevel), zap.AddCaller())
}

// require marks flags as required. Natively the command looks itself, because
// cobra would look at what was typed alone.
func (t *tree) require(cmd *cobra.Command, flags ...string) {
	if !t.upstream() {
		return
	}
	for _, f := range flags {
		app.Must(cmd.MarkFlagRequired(f))
	}
}

// missing refuses an empty required flag.
func missing(flag, value string) error {
	if value == "" {
		return cli.Usagef("--%s is missing", flag)
	}
	return nil
}
