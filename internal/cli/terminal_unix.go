//go:build !windows

package cli

import (
	"fmt"
	"os"

	"golang.org/x/term"
)

// terminal is the controlling terminal of the process.
type terminal struct{ *os.File }

func openTerminal() (Terminal, error) {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, ErrNoTerminal
	}
	return terminal{f}, nil
}

func (t terminal) ReadPassword() (string, error) {
	b, err := term.ReadPassword(int(t.Fd()))
	if err != nil {
		return "", fmt.Errorf("read password: %w", err)
	}
	return string(b), nil
}
