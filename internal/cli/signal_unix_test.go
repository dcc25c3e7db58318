//go:build !windows

package cli_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/etcdkit/etcdkit/internal/cli"
)

func TestASignalEndsTheContextAndIsItsCause(t *testing.T) {
	ctx, stop := cli.NotifyContext(t.Context(), syscall.SIGHUP)
	defer stop()
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	if got := cli.Signal(fmt.Errorf("save: %w", context.Cause(ctx))); got != syscall.SIGHUP {
		t.Errorf("signal %v, want SIGHUP", got)
	}
}

// silent is a terminal whose user types nothing.
type silent struct {
	io.Reader
	strings.Builder
	closed bool
}

func (s *silent) Close() error                  { s.closed = true; return nil }
func (s *silent) ReadPassword() (string, error) { select {} }

func TestASignalEndsAWaitForTheUser(t *testing.T) {
	never, writer := io.Pipe()
	defer writer.Close()
	for name, wait := range map[string]func(*cli.Env) error{
		"an answer":      func(e *cli.Env) error { _, err := e.Ask("sure?"); return err },
		"a password":     func(e *cli.Env) error { _, err := e.AskPassword("Password: "); return err },
		"standard input": func(e *cli.Env) error { _, err := io.ReadAll(e.Input()); return err },
	} {
		t.Run(name, func(t *testing.T) {
			tty := &silent{Reader: never}
			env := &cli.Env{In: never, TTY: func() (cli.Terminal, error) { return tty, nil }}
			ctx, cancel := context.WithCancelCause(t.Context())
			_, stop := env.EndOn(ctx)
			defer stop()
			cancel(&cli.SignalError{Signal: syscall.SIGINT})
			if err := wait(env); cli.Signal(err) != syscall.SIGINT {
				t.Errorf("got %v, want the signal", err)
			}
			if asked := tty.Len() > 0; asked != tty.closed {
				t.Errorf("asked on the terminal: %v, gave it back: %v", asked, tty.closed)
			}
		})
	}
}
