package cli

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/term"
)

// PromptPassword asks on standard output and reads one line of standard input,
// as upstream's programs do: without showing it where the input is a terminal,
// and from a pipe or a file as well.
func (e *Env) PromptPassword(prompt string) (string, error) {
	fmt.Fprint(e.Out, prompt)
	defer fmt.Fprintln(e.Out)
	in, _ := e.In.(*os.File)
	if in != nil && term.IsTerminal(int(in.Fd())) {
		b, err := term.ReadPassword(int(in.Fd()))
		if err != nil {
			return "", fmt.Errorf("failed during password entry: %w", err)
		}
		return strings.TrimSpace(string(b)), nil
	}
	e.stty(in, "-echo")
	defer e.stty(in, "echo")
	line, err := readLine(e.In)
	if err != nil && err != io.EOF { //nolint:errorlint // io.Reader's contract
		return "", fmt.Errorf("failed during password entry: %w", err)
	}
	return strings.TrimSpace(line), nil
}

// stty lets the system's stty say that there is no terminal, in the words that
// upstream's users see.
func (e *Env) stty(in *os.File, mode string) {
	if in == nil {
		return
	}
	cmd := exec.Command("stty", mode)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, e.Out, e.Err
	_ = cmd.Run()
}
