package app_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/internal/testing/faultproxy"
)

// connected runs fn in a command with these endpoints, and returns its exit
// code and what it wrote to standard error.
func connected(t *testing.T, dialect cli.Dialect, fn func(ctx context.Context, a *app.App) error, endpoints ...string) (int, string) {
	t.Helper()
	var stderr strings.Builder
	a := app.New("etcdkit", dialect, &cli.Env{Out: &strings.Builder{}, Err: &stderr})
	root := &cobra.Command{Use: "etcdkit", SilenceErrors: true, SilenceUsage: true, PersistentPreRunE: a.Prepare}
	root.RunE = a.Run(func(ctx context.Context, _ []string) error { return fn(ctx, a) })
	a.Global.Bind(root.PersistentFlags(), a.Dialect)
	root.SetArgs([]string{"--command-timeout=60s", "--endpoints=" + strings.Join(endpoints, ",")})
	cmd, err := root.ExecuteContextC(t.Context())
	return a.Report(cmd.CommandPath(), err), stderr.String()
}

// Silence is not another cluster. But an endpoint gets nothing before it has
// answered and belongs to the cluster.
func TestASilentEndpointIsLeftOutUntilItBelongs(t *testing.T) {
	t.Parallel()
	one, two := etcdtest.Start(t, embedded.Options{}).Endpoints()[0], etcdtest.Start(t, embedded.Options{}).Endpoints()[0]
	same, other := faultproxy.NewTCP(t, one), faultproxy.NewTCP(t, two)
	same.Set(faultproxy.Faults{Refuse: true})
	other.Set(faultproxy.Faults{Swallow: true})
	code, stderr := connected(t, cli.Native, func(ctx context.Context, a *app.App) error {
		client, err := a.Client(ctx)
		if err != nil {
			return err
		}
		defer client.Close()
		if got := client.Endpoints(); !slices.Equal(got, []string{one}) {
			return fmt.Errorf("connected to %q, want %q alone", got, one)
		}
		other.Set(faultproxy.Faults{})
		asked := other.Accepted()
		etcdtest.Until(t, "the other cluster is asked again", func(context.Context) bool { return other.Accepted() > asked })
		same.Set(faultproxy.Faults{})
		etcdtest.Until(t, "the endpoint that came back is used", func(context.Context) bool { return len(client.Endpoints()) > 1 })
		if got := client.Endpoints(); !slices.Equal(got, []string{one, same.Addr()}) {
			return fmt.Errorf("connected to %q, want %q and %q", got, one, same.Addr())
		}
		return nil
	}, other.Addr(), same.Addr(), one)
	if code != 0 {
		t.Error(stderr)
	}
}

// With one endpoint nothing is asked before the command's own requests.
func TestOneEndpointCostsNoRequest(t *testing.T) {
	t.Parallel()
	proxy := faultproxy.NewTCP(t, etcdtest.Start(t, embedded.Options{}).Endpoints()[0])
	code, stderr := connected(t, cli.Native, func(ctx context.Context, a *app.App) error {
		client, err := a.Client(ctx)
		if err != nil {
			return err
		}
		defer client.Close()
		if _, err = client.Get(ctx, "a"); err == nil && proxy.Accepted() != 1 {
			return fmt.Errorf("%d connections, want 1", proxy.Accepted())
		}
		return err
	}, proxy.Addr())
	if code != 0 {
		t.Error(stderr)
	}
}
