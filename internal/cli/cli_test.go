package cli_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/etcdkit/etcdkit/internal/cli"
)

func TestAKindKeepsTheTextAndTheCause(t *testing.T) {
	cause := errors.New("member m2 has no leader")
	err := fmt.Errorf("health: %w", cli.Verdict(cause))
	if err.Error() != "health: member m2 has no leader" {
		t.Errorf("text %q, want the cause alone", err)
	}
	if !errors.Is(err, cli.ErrVerdict) || !errors.Is(err, cause) || errors.Is(err, cli.ErrUsage) {
		t.Errorf("Is verdict %v, cause %v, usage %v; want true, true, false",
			errors.Is(err, cli.ErrVerdict), errors.Is(err, cause), errors.Is(err, cli.ErrUsage))
	}
	if cli.Verdict(nil) != nil {
		t.Error("a kind made an error of nil")
	}
}

func TestOtherWordsKeepTheKind(t *testing.T) {
	other := errors.New("nothing listens there")
	if err := cli.KeepKind(other, cli.CannotTell(errors.New("deadline exceeded"))); !errors.Is(err, cli.ErrCannotTell) || !errors.Is(err, other) {
		t.Errorf("got %v, want it to be what cannot be told", err)
	}
	if err := cli.KeepKind(other, errors.New("plain")); err != other { //nolint:errorlint // the very same
		t.Errorf("got %v, want it as it was", err)
	}
}

// script is a terminal whose user has typed already.
type script struct {
	io.Reader
	said strings.Builder
}

func (s *script) Write(p []byte) (int, error)   { return s.said.Write(p) }
func (s *script) Close() error                  { return nil }
func (s *script) ReadPassword() (string, error) { return "secret", nil }

func TestAsk(t *testing.T) {
	for name, tc := range map[string]struct {
		typed string
		want  bool
	}{
		"y is yes":                    {"y\n", true},
		"YES is yes":                  {"YES\n", true},
		"a bare return is no":         {"\n", false},
		"the end of input is no":      {"", false},
		"anything else is no":         {"yes please\n", false},
		"an answer without a newline": {"y", true},
	} {
		t.Run(name, func(t *testing.T) {
			term := &script{Reader: strings.NewReader(tc.typed)}
			env := &cli.Env{TTY: func() (cli.Terminal, error) { return term, nil }}
			got, err := env.Ask("delete 3 keys?")
			if err != nil || got != tc.want || term.said.String() != "delete 3 keys? [y/N] " {
				t.Errorf("got %v, %v after %q; want %v", got, err, term.said.String(), tc.want)
			}
		})
	}
}

func TestWithoutATerminalNobodyIsAsked(t *testing.T) {
	env := &cli.Env{TTY: func() (cli.Terminal, error) { return nil, cli.ErrNoTerminal }}
	if _, err := env.Ask("?"); !errors.Is(err, cli.ErrNoTerminal) {
		t.Errorf("got %v, want ErrNoTerminal", err)
	}
	if _, err := env.AskPassword("Password: "); !errors.Is(err, cli.ErrNoTerminal) {
		t.Errorf("got %v, want ErrNoTerminal", err)
	}
}

func TestGetenvTakesTheLastAndEmptyIsUnset(t *testing.T) {
	env := &cli.Env{Environ: []string{"A=1", "A=2", "B=", "C=x=y"}}
	if a, b, c := env.Getenv("A"), env.Getenv("B"), env.Getenv("C"); a != "2" || b != "" || c != "x=y" {
		t.Errorf("got %q, %q, %q", a, b, c)
	}
}

func TestColorIsForTerminalsThatWantIt(t *testing.T) {
	for name, tc := range map[string]struct {
		env  cli.Env
		want bool
	}{
		"a terminal":                      {cli.Env{OutTTY: true}, true},
		"a pipe":                          {cli.Env{}, false},
		"a terminal and NO_COLOR":         {cli.Env{OutTTY: true, Environ: []string{"NO_COLOR=1"}}, false},
		"NO_COLOR set to nothing":         {cli.Env{OutTTY: true, Environ: []string{"NO_COLOR="}}, true},
		"a terminal that knows no colour": {cli.Env{OutTTY: true, Environ: []string{"TERM=dumb"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.env.Color(); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
