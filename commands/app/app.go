// Package app is what the commands of all three trees share: the process, the
// dialect, the global flags, and the few steps that every command takes with
// them, so that a command file is flags, one call and one view.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/config"
	"github.com/etcdkit/etcdkit/internal/etcd"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/output"
)

// App is one run of one of the three programs.
type App struct {
	*cli.Env
	Name    string // etcdkit, etcdctl or etcdutl
	Dialect cli.Dialect
	Global  config.Flags
	Format  output.Format

	conn *etcd.Config // how the cluster was last connected to, for explaining errors
	ran  bool         // a command's own code was reached

	checked bool // the endpoints and the certificate files of conn can be used
	lists   lists
}

// New returns the App of a program.
func New(name string, dialect cli.Dialect, env *cli.Env) *App {
	if dialect.GuardsTerminals() {
		env.Err = output.Guard(env.Err)
		if env.OutTTY {
			env.Out = output.Guard(env.Out)
		}
	}
	return &App{Env: env, Name: name, Dialect: dialect, Format: output.Simple}
}

// Prepare is the root's PersistentPreRunE in the native dialect: it completes
// the flags and refuses what the command cannot do before anything is sent.
func (a *App) Prepare(cmd *cobra.Command, _ []string) error {
	if err := a.Global.Fill(cmd.Flags(), a.Env); err != nil {
		return cli.Usage(err)
	}
	for _, warning := range a.Global.File.Warnings {
		a.Remind("%s", warning)
	}
	if err := checkValues(cmd.Flags()); err != nil {
		return err
	}
	format, err := output.Parse(a.Global.WriteOut, formats(cmd))
	if err != nil {
		return cli.Usage(err)
	}
	a.Format = format
	return nil
}

// Run adapts fn to cobra. What fails before it is wrong usage, what fails in it
// is not; a failed connection is explained, and an end by a signal is told as
// such.
func (a *App) Run(fn func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.ran = true
		noteEnd := a.note(cmd, args)
		err := a.explain(cmd.Context(), fn(cmd.Context(), args))
		noteEnd(err)
		return err
	}
}

func (a *App) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cli.Signal(cause) != 0 {
		return a.endedBySignal(err, cause)
	}
	if a.conn != nil && a.Dialect.DiagnosesConnections() {
		return cli.KeepKind(etcd.Diagnose(ctx, *a.conn, err), err)
	}
	return err
}

// endedBySignal keeps what the command has to say beside the signal, unless it
// only says that it was cancelled.
func (a *App) endedBySignal(err, cause error) error {
	if errors.Is(err, context.Canceled) || cli.Signal(err) != 0 {
		if next := hint.Of(err); next != "" { // how to go on
			return hint.With(cause, "%s", next)
		}
		return cause
	}
	return errors.Join(err, cause)
}

// Group returns a command that only holds others. Without NoArgs cobra answers
// an unknown subcommand with help and exit code 0.
func (a *App) Group(use, short string, subs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.ran = true
			return cmd.Help()
		},
	}
	c.AddCommand(subs...)
	return c
}

// Connection returns how to connect to the cluster that the user means.
func (a *App) Connection() (etcd.Config, error) {
	c, err := a.Settings()
	if err != nil || a.checked || !a.Dialect.DiagnosesConnections() {
		return c, err
	}
	if err := c.CheckEndpoints(); err != nil {
		return c, cli.Usage(err)
	}
	if err := c.CheckFiles(); err != nil {
		return c, cli.Usage(err)
	}
	if c.TLS.InsecureSkipVerify {
		a.Remind("--insecure-skip-tls-verify: the server's certificate is not verified; anybody on the way can read and change what is sent, passwords included")
	}
	a.checked = true
	return c, nil
}

// Settings is Connection for who does not connect: endpoints may be none, and
// certificate files unreadable.
func (a *App) Settings() (etcd.Config, error) {
	if a.conn != nil {
		return *a.conn, nil
	}
	c, err := a.Global.Connection(a.Env)
	if err != nil {
		return c, err
	}
	c.Log = a.Logger()
	a.conn = &c
	return c, nil
}

// Client connects to all endpoints. The caller closes the client.
func (a *App) Client(ctx context.Context) (*clientv3.Client, error) {
	c, err := a.Connection()
	if err != nil {
		return nil, err
	}
	return a.Dial(ctx, c)
}

// ClientAt connects to these endpoints alone.
func (a *App) ClientAt(ctx context.Context, endpoints ...string) (*clientv3.Client, error) {
	c, err := a.Connection()
	if err != nil {
		return nil, err
	}
	return a.Dial(ctx, c.At(endpoints...))
}

// Dial opens a client and makes sure that its endpoints belong to one cluster,
// the one that --expect-cluster-id names.
func (a *App) Dial(ctx context.Context, c etcd.Config) (*clientv3.Client, error) {
	list, err := a.oneCluster(ctx, c)
	if err != nil {
		return nil, err
	}
	client, err := etcd.Dial(ctx, list.answering(c))
	if err != nil {
		return nil, err
	}
	list.admitLater(c, client)
	if err := a.checkClusterID(ctx, client); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return client, nil
}

// Timeout bounds one request of a command that ends by itself.
func (a *App) Timeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, a.Global.CommandTimeout)
}

// Print shows a result on standard output in the format asked for.
func (a *App) Print(r output.Result) error { return a.PrintTo(a.Out, r) }

// PrintTo shows a result on w, which leads to standard output, in the format
// asked for.
func (a *App) PrintTo(w io.Writer, r output.Result) error {
	if a.Dialect.GuardsTerminals() {
		r = r.ForPeople()
	}
	return a.Format.Print(a.Screen(w), r)
}

// Screen returns w, which leads to standard output, as a terminal where it is
// one and the dialect makes results fit it.
func (a *App) Screen(w io.Writer) io.Writer {
	if a.Dialect.FitsTables() && (a.OutTTY || a.Width > 0) {
		return output.Screen(w, a.Width)
	}
	return w
}

// Note tells the user something on standard error that is not an error.
func (a *App) Note(format string, args ...any) {
	if !a.Global.Quiet {
		fmt.Fprintf(a.Err, "%s: %s\n", a.Name, a.NextStep(fmt.Sprintf(format, args...)))
	}
}

// Remind is Warn for what is as unsafe today as it was yesterday: --quiet hides
// it, for a job that runs every night.
func (a *App) Remind(format string, args ...any) {
	if !a.Global.Quiet {
		a.Warn(format, args...)
	}
}

// Warn tells the user of something that may go wrong. --quiet does not hide it.
func (a *App) Warn(format string, args ...any) {
	fmt.Fprintf(a.Err, "%s: warning: %s\n", a.Name, a.NextStep(fmt.Sprintf(format, args...)))
}

// formatsMark is the annotation that lists a command's formats.
const formatsMark = "etcdkit_formats"

// Formats declares the formats that cmd can show. Without it they are those of
// output.Standard.
func Formats(cmd *cobra.Command, all ...output.Format) *cobra.Command {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	for _, f := range all {
		cmd.Annotations[formatsMark] += string(f) + "\n"
	}
	return cmd
}

func formats(cmd *cobra.Command) []output.Format {
	marks := cmd.Annotations[formatsMark]
	if marks == "" {
		return output.Standard()
	}
	var all []output.Format
	for name := range strings.FieldsSeq(marks) {
		all = append(all, output.Format(name))
	}
	return all
}
