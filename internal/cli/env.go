// Package cli is the process as data: streams, environment, clock, terminal and
// signals, the kinds of failure that decide the exit code, and the dialect that
// a command speaks.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
	"google.golang.org/grpc/grpclog"
)

// Env is all that a command may know of its process. Tests build their own.
type Env struct {
	In       io.Reader
	Out, Err io.Writer
	Live     bool // Err is a terminal, so progress may redraw its line
	OutTTY   bool // Out is a terminal, so binary data must not go there
	Width    int  // columns of the terminal behind Out, 0 when there is none
	Environ  []string
	Now      func() time.Time
	// TTY opens the user's terminal for a question, whatever the standard
	// streams are. It fails where there is none, as under cron.
	TTY func() (Terminal, error)
	// Notify is NotifyContext in a process. Without it no signal is heeded.
	Notify func(parent context.Context, signals ...os.Signal) (context.Context, context.CancelFunc)
	// GRPCLog sets where grpc's own log goes. That is global to the process and
	// may be set only before anything uses grpc, so only a process that runs one
	// command has it: main sets it to grpclog.SetLoggerV2, System does not.
	GRPCLog func(grpclog.LoggerV2)

	ending context.Context // of EndOn
}

// A Terminal can be asked.
type Terminal interface {
	io.ReadWriteCloser
	// ReadPassword reads a line without showing it.
	ReadPassword() (string, error)
}

// System returns the Env of this process.
func System() *Env {
	width := 0
	if w, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil {
		width = w
	}
	return &Env{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Live:    term.IsTerminal(int(os.Stderr.Fd())) && os.Getenv("TERM") != "dumb",
		OutTTY:  term.IsTerminal(int(os.Stdout.Fd())),
		Width:   width,
		Environ: os.Environ(),
		Now:     time.Now,
		TTY:     openTerminal,
		Notify:  NotifyContext,
	}
}

// Getenv returns the value of a variable. A variable that is set to nothing
// counts as unset.
func (e *Env) Getenv(name string) string {
	for i := len(e.Environ) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(e.Environ[i], "="); ok && k == name {
			return v
		}
	}
	return ""
}

// Color reports whether text on Out may be coloured (https://no-color.org).
func (e *Env) Color() bool {
	return e.OutTTY && e.Getenv("NO_COLOR") == "" && e.Getenv("TERM") != "dumb"
}

// ErrNoTerminal says that there is nobody to ask.
var ErrNoTerminal = errors.New("no terminal to ask on")

// AskPassword asks for a password on the user's terminal.
func (e *Env) AskPassword(prompt string) (string, error) {
	t, err := e.openTTY()
	if err != nil {
		return "", fmt.Errorf("ask for a password: %w", err)
	}
	defer t.Close()
	if _, err := fmt.Fprint(t, prompt); err != nil {
		return "", fmt.Errorf("ask for a password: %w", err)
	}
	defer fmt.Fprintln(t)
	return Interruptible(e, t.ReadPassword)
}

// Ask puts a yes-or-no question on the user's terminal; anything but yes is no.
func (e *Env) Ask(question string) (bool, error) {
	t, err := e.openTTY()
	if err != nil {
		return false, err
	}
	defer t.Close()
	if _, err := fmt.Fprintf(t, "%s [y/N] ", question); err != nil {
		return false, err
	}
	answer, err := Interruptible(e, func() (string, error) { return readLine(t) })
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes", nil
}

func (e *Env) openTTY() (Terminal, error) {
	if e.TTY == nil {
		return nil, ErrNoTerminal
	}
	return e.TTY()
}

// readLine reads up to a newline and not a byte further: what follows belongs
// to whoever reads next.
func readLine(r io.Reader) (string, error) {
	var line []byte
	b := make([]byte, 1)
	for {
		n, err := r.Read(b)
		if n == 1 {
			if b[0] == '\n' {
				return string(line), nil
			}
			line = append(line, b[0])
		}
		if err != nil {
			return string(line), err
		}
	}
}
