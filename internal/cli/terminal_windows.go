package cli

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/term"
)

// terminal is the console of the process: its input and its output.
type terminal struct{ in, out *os.File }

func openTerminal() (Terminal, error) {
	in, err := os.OpenFile("CONIN$", os.O_RDWR, 0)
	if err != nil {
		return nil, ErrNoTerminal
	}
	out, err := os.OpenFile("CONOUT$", os.O_RDWR, 0)
	if err != nil {
		return nil, errors.Join(ErrNoTerminal, in.Close())
	}
	return terminal{in, out}, nil
}

func (t terminal) Read(p []byte) (int, error)  { return t.in.Read(p) }
func (t terminal) Write(p []byte) (int, error) { return t.out.Write(p) }
func (t terminal) Close() error                { return errors.Join(t.in.Close(), t.out.Close()) }

func (t terminal) ReadPassword() (string, error) {
	password, err := readHidden(t.in)
	if err != nil {
		return "", fmt.Errorf("read password: %w", err)
	}
	return password, nil
}

// readHidden reads a line from a console without showing it.
func readHidden(f *os.File) (string, error) {
	b, err := term.ReadPassword(int(f.Fd()))
	return string(b), err
}
