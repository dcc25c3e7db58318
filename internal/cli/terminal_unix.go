//go:build !windows

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
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
	password, err := readHidden(t.File)
	if err != nil && (!errors.Is(err, io.EOF) || password == "") {
		return "", fmt.Errorf("read password: %w", err)
	}
	return password, nil
}

// readHidden reads a line from a terminal without showing it. Unlike
// term.ReadPassword it ends with io.EOF when the input does.
func readHidden(f *os.File) (string, error) {
	fd := int(f.Fd())
	before, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return "", err
	}
	hidden := *before
	hidden.Lflag &^= unix.ECHO
	hidden.Lflag |= unix.ICANON | unix.ISIG
	hidden.Iflag |= unix.ICRNL
	if err := unix.IoctlSetTermios(fd, setTermios, &hidden); err != nil {
		return "", err
	}
	defer unix.IoctlSetTermios(fd, setTermios, before) //nolint:errcheck // nothing is left to do about it
	return readLine(f)
}
