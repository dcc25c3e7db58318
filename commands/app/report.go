package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc/status"

	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/output"
)

// Exit codes of the native dialect, see docs/exit-codes.md.
const (
	ExitOK         = 0
	ExitFailed     = 1
	ExitUsage      = 2
	ExitVerdict    = 3
	ExitCannotTell = 4
	ExitGuard      = 5
	exitSignal     = 128 // and the signal's number
)

// Report tells the error of a command to the user and returns the exit code. It
// is the only place of the native tree that does either.
func (a *App) Report(cmd string, err error) int {
	if err == nil {
		return ExitOK
	}
	if child, ok := errors.AsType[*cli.ChildExit](err); ok {
		return child.Code
	}
	code := a.exitCode(err)
	next := a.NextStep(hint.Of(err))
	if next == "" && code == ExitUsage {
		next = fmt.Sprintf("see %q", cmd+" --help")
	}
	// A flag that does not parse stops before the format is known to be one.
	if a.Format == output.JSON || a.Global.WriteOut == string(output.JSON) {
		_ = json.NewEncoder(a.Err).Encode(failure{Error: words(err), Hint: next, ExitCode: code})
		return code
	}
	fmt.Fprintf(a.Err, "%s: error: %s\n", a.Name, words(err))
	if next != "" {
		fmt.Fprintf(a.Err, "%s: hint: %s\n", a.Name, next)
	}
	return code
}

// failure is an error for programs, on standard error.
type failure struct {
	Error    string `json:"error"`
	Hint     string `json:"hint,omitempty"`
	ExitCode int    `json:"exitCode"`
}

func (a *App) exitCode(err error) int {
	switch {
	case cli.Signal(err) != 0:
		return exitSignal + int(cli.Signal(err))
	case !a.ran, errors.Is(err, cli.ErrUsage):
		return ExitUsage
	case errors.Is(err, cli.ErrVerdict):
		return ExitVerdict
	case errors.Is(err, cli.ErrCannotTell):
		return ExitCannotTell
	case errors.Is(err, cli.ErrGuard):
		return ExitGuard
	}
	return ExitFailed
}

// words returns the error's text on one line, without what grpc wraps around a
// server's message.
func words(err error) string {
	text := err.Error()
	if s, ok := status.FromError(err); ok && s.Message() != "" {
		text = s.Message()
	}
	return strings.Join(strings.Split(strings.TrimSpace(text), "\n"), "; ")
}

// Logger returns the log of the client library: nothing, or with --debug
// everything on standard error.
func (a *App) Logger() *zap.Logger {
	if !a.Global.Debug {
		return zap.NewNop()
	}
	enc := zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig())
	return zap.New(zapcore.NewCore(enc, zapcore.AddSync(a.Err), zap.DebugLevel))
}
