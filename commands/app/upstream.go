package app

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/etcdkit/etcdkit/internal/cli"
)

// UpstreamFormats are the values of --write-out under upstream's names.
func UpstreamFormats() []string { return []string{"fields", "json", "protobuf", "simple", "table"} }

// An ExitCoder is an error whose exit code upstream has chosen.
type ExitCoder interface {
	error
	ExitCode() int
}

// ReportUpstream tells an error to the user as upstream's programs do, unless
// they have been told of it already, and returns the exit code.
func (a *App) ReportUpstream(err error, told bool) int {
	if err == nil {
		return ExitOK
	}
	if child, ok := errors.AsType[*cli.ChildExit](err); ok {
		return child.Code
	}
	if s := cli.Signal(err); s != 0 {
		return exitSignal + int(s)
	}
	if !told {
		fmt.Fprintln(a.Err, "Error:", err)
	}
	if coded, ok := errors.AsType[ExitCoder](err); ok {
		return coded.ExitCode()
	}
	return ExitFailed
}

// Unread makes an error of writing to whoever reads no more what the signal
// would have made of it: they have seen enough.
func Unread(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return &cli.ChildExit{Code: exitSignal + int(syscall.SIGPIPE)}
	}
	return err
}
