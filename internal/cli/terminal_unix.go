//go:build !windows

package cli

import (
	"fmt"
	"os"

	"golang.org/x/term"
)

// terminal is the controlling terminal of the process, and its state before we
// asked for anything.
type terminal struct {
	*os.File
	before *term.State
}

func openTerminal() (Terminal, error) {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, ErrNoTerminal
	}
	before, err := term.GetState(int(f.Fd()))
	if err != nil {
		before = nil
	}
	return terminal{f, before}, nil
}

// Close also shows again what is typed, should a password be waited for still.
func (t terminal) Close() error {
	if t.before != nil {
		_ = term.Restore(int(t.Fd()), t.before)
	}
	return t.File.Close()
}

func (t terminal) ReadPassword() (string, error) {
	b, err := term.ReadPassword(int(t.Fd()))
	if err != nil {
		return "", fmt.Errorf("read password: %w", err)
	}
	return string(b), nil
}
