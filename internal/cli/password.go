package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/term"
)

// exitAtPrompt is how upstream's programs end when a signal comes while they
// wait for a password.
const exitAtPrompt = 255

// PromptPassword asks on standard output and reads one line of standard input,
// as upstream's programs do: without showing it where the input is a terminal,
// and from a pipe or a file as well.
func (e *Env) PromptPassword(prompt string) (string, error) {
	ctx, stop := e.Heed(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer stop()
	fmt.Fprint(e.Out, prompt)
	in, _ := e.In.(*os.File)
	show := e.hide(in)
	password, err := until(ctx, func() (string, error) { return e.hidden(in) })
	show()
	if Signal(err) != 0 {
		return "", &ChildExit{Code: exitAtPrompt}
	}
	fmt.Fprintln(e.Out)
	if err != nil {
		return "", fmt.Errorf("failed during password entry: %w", err)
	}
	return strings.TrimSpace(password), nil
}

// hide has what is typed not shown until show is called. It lets the system's
// stty say that there is no terminal, in the words that upstream's users see.
func (e *Env) hide(in *os.File) (show func()) {
	switch {
	case in == nil:
		return func() {}
	case !term.IsTerminal(int(in.Fd())):
		e.stty(in, "-echo")
		return func() { e.stty(in, "echo") }
	}
	before, err := term.GetState(int(in.Fd()))
	return func() {
		if err == nil {
			_ = term.Restore(int(in.Fd()), before)
		}
	}
}

// hidden reads a line, on a terminal without showing it.
func (e *Env) hidden(in *os.File) (string, error) {
	read := func() (string, error) { return readLine(e.In) }
	if in != nil && term.IsTerminal(int(in.Fd())) {
		read = func() (string, error) { return readHidden(in) }
	}
	line, err := read()
	if err == io.EOF { //nolint:errorlint // io.Reader's contract
		err = nil
	}
	return line, err
}

func (e *Env) stty(in *os.File, mode string) {
	cmd := exec.Command("stty", mode)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, e.Out, e.Err
	_ = cmd.Run()
}
