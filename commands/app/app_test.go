package app_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/output"
)

// run executes a command of one line, as main would, and returns its exit code
// and what it wrote to standard error.
func run(ctx context.Context, t *testing.T, fn func(ctx context.Context, args []string) error, args ...string) (int, string) {
	t.Helper()
	var stderr strings.Builder
	a := app.New("etcdkit", cli.Native, &cli.Env{Out: &strings.Builder{}, Err: &stderr})
	root := &cobra.Command{Use: "etcdkit", SilenceErrors: true, SilenceUsage: true, PersistentPreRunE: a.Prepare, RunE: a.Run(fn)}
	a.Global.Bind(root.PersistentFlags(), a.Dialect)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	code := a.Report(cmd.CommandPath(), err)
	return code, stderr.String()
}

func TestReport(t *testing.T) {
	cause := errors.New("cause")
	for name, tc := range map[string]struct {
		err  error
		args []string
		code int
		want string
	}{
		"success says nothing":          {nil, nil, 0, ""},
		"a plain failure":               {cause, nil, 1, "etcdkit: error: cause\n"},
		"a failure with a next step":    {fmt.Errorf("save: %w", hint.With(cause, "do this")), nil, 1, "etcdkit: error: save: cause\netcdkit: hint: do this\n"},
		"wrong usage":                   {cli.Usagef("--a: bad"), nil, 2, "etcdkit: error: --a: bad\netcdkit: hint: see \"etcdkit --help\"\n"},
		"an unknown flag":               {nil, []string{"--nosuch"}, 2, "etcdkit: error: unknown flag: --nosuch\netcdkit: hint: see \"etcdkit --help\"\n"},
		"a bad judgement":               {cli.Verdict(cause), nil, 3, "etcdkit: error: cause\n"},
		"a judgement that cannot be":    {cli.CannotTell(cause), nil, 4, "etcdkit: error: cause\n"},
		"a refusal":                     {cli.Guard(cause), nil, 5, "etcdkit: error: cause\n"},
		"a child speaks for itself":     {&cli.ChildExit{Code: 42}, nil, 42, ""},
		"several causes are one line":   {errors.Join(cause, errors.New("other")), nil, 1, "etcdkit: error: cause; other\n"},
		"a server's words without grpc": {status.Error(codes.Internal, "disk on fire"), nil, 1, "etcdkit: error: disk on fire\n"},
		"a failure for programs":        {hint.With(cause, "do"), []string{"-w=json"}, 1, "{\"error\":\"cause\",\"hint\":\"do\",\"exitCode\":1}\n"},
		"a signal":                      {&cli.SignalError{Signal: syscall.SIGTERM}, nil, 143, "etcdkit: error: ended by signal: terminated\n"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stderr := run(t.Context(), t, func(context.Context, []string) error { return tc.err }, tc.args...)
			if code != tc.code || stderr != tc.want {
				t.Errorf("got %d and %q, want %d and %q", code, stderr, tc.code, tc.want)
			}
		})
	}
}

func TestASignalIsToldOnceAndBesideWhatWasLeftUndone(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"a mere cancellation":     {context.Canceled, "etcdkit: error: ended by signal: hangup\n"},
		"something to say":        {errors.New("2 of 3 members done"), "etcdkit: error: 2 of 3 members done; ended by signal: hangup\n"},
		"the signal as the error": {fmt.Errorf("save: %w", &cli.SignalError{Signal: syscall.SIGHUP}), "etcdkit: error: ended by signal: hangup\n"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(&cli.SignalError{Signal: syscall.SIGHUP})
			code, stderr := run(ctx, t, func(context.Context, []string) error { return tc.err })
			if code != 129 || stderr != tc.want {
				t.Errorf("got %d and %q, want 129 and %q", code, stderr, tc.want)
			}
		})
	}
}

func TestConfirm(t *testing.T) {
	typed := func(answer string) func() (cli.Terminal, error) {
		return func() (cli.Terminal, error) { return terminal{strings.NewReader(answer)}, nil }
	}
	for name, tc := range map[string]struct {
		yes     bool
		tty     func() (cli.Terminal, error)
		refused bool
	}{
		"--yes needs no terminal":         {true, nil, false},
		"a user who says yes":             {false, typed("y\n"), false},
		"a user who says no":              {false, typed("n\n"), true},
		"a cron job cannot be asked":      {false, nil, true},
		"the end of the terminal is a no": {false, typed(""), true},
	} {
		t.Run(name, func(t *testing.T) {
			a := app.New("etcdkit", cli.Native, &cli.Env{TTY: tc.tty})
			a.Global.Yes = tc.yes
			err := a.Confirm("delete 3 keys?")
			if (err != nil) != tc.refused || (err != nil) != errors.Is(err, cli.ErrGuard) {
				t.Errorf("got %v, want refused %v by a guard", err, tc.refused)
			}
		})
	}
}

type terminal struct{ *strings.Reader }

func (terminal) Write(p []byte) (int, error)   { return len(p), nil }
func (terminal) Close() error                  { return nil }
func (terminal) ReadPassword() (string, error) { return "", nil }

func TestExpectClusterID(t *testing.T) {
	cluster, err := embedded.Start(t.Context(), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	var id uint64
	connect := func(want string) error {
		a := app.New("etcdkit", cli.Native, &cli.Env{})
		a.Global.Conn.Endpoints = cluster.Endpoints()
		a.Global.CommandTimeout = a.Global.CommandTimeout + 20e9
		a.Global.ExpectClusterID = want
		client, err := a.Client(t.Context())
		if err != nil {
			return err
		}
		defer client.Close()
		resp, err := client.MemberList(t.Context())
		if err == nil {
			id = resp.Header.ClusterId
		}
		return err
	}
	if err := connect(""); err != nil {
		t.Fatal(err)
	}
	if err := connect(output.ID(id)); err != nil {
		t.Errorf("with the right id: %v", err)
	}
	if err := connect("1"); !errors.Is(err, cli.ErrGuard) {
		t.Errorf("with another id: %v, want a guard", err)
	}
	if err := connect("xyz"); !errors.Is(err, cli.ErrUsage) {
		t.Errorf("with no id: %v, want a usage error", err)
	}
}
