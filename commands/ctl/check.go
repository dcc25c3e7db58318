package ctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/health"
	"github.com/etcdkit/etcdkit/internal/etcd"
	"github.com/etcdkit/etcdkit/internal/load"
)

func newCheckCmd(t *tree) *cobra.Command {
	return t.group("check <subcommand>", "commands for checking properties of the etcd cluster. Use `etcdctl check --help` to see subcommands",
		"commands for checking properties of the etcd cluster", groupUtility, newCheckPerfCmd(t), newCheckDatascaleCmd(t))
}

// checkOptions are what both checks share.
type checkOptions struct {
	load, prefix            string
	autoCompact, autoDefrag bool
	duration                time.Duration // of check perf, natively
}

func (o *checkOptions) bind(t *tree, cmd *cobra.Command, prefix string) {
	full := t.Dialect.CleansUp()
	cmd.Flags().StringVar(&o.prefix, "prefix", prefix, "The prefix for writing the "+checkName(cmd)+" check's keys.")
	cmd.Flags().BoolVar(&o.autoCompact, "auto-compact", full, "Compact storage with last revision after test is finished.")
	cmd.Flags().BoolVar(&o.autoDefrag, "auto-defrag", full, "Defragment storage after test is finished.")
}

// checkName is what the check is called in words.
func checkName(cmd *cobra.Command) string {
	if cmd.Name() == "perf" {
		return "performance"
	}
	return cmd.Name()
}

// workload returns the load's name in its short form.
func (o *checkOptions) workload() (string, error) {
	switch o.load {
	case "s", "small":
		return "s", nil
	case "m", "medium":
		return "m", nil
	case "l", "large":
		return "l", nil
	case "xl", "xLarge":
		return "xl", nil
	}
	return "", code(exitBadFeature, "unknown load option %v", o.load)
}

// checking is a check that is ready to write.
type checking struct {
	conn      etcd.Config
	clients   []*clientv3.Client
	close     func() // the clients
	amount    int    // of the workload
	sizeBytes int64  // of the database, before
}

// begin is how both checks begin: nothing is written yet. sizes tells the amount
// and the clients of a workload, advice what deletes the keys of an older check.
func (o *checkOptions) begin(ctx context.Context, t *tree, args []string, sizes func(workload string) (amount, clients int), advice string) (*checking, error) {
	workload, err := o.workload()
	if err != nil {
		return nil, err
	}
	if err := t.tooMany(args, 0); err != nil {
		return nil, err
	}
	c, err := t.connection()
	if err != nil {
		return nil, err
	}
	amount, n := sizes(workload)
	clients, closeAll, err := t.dialMany(ctx, c, n)
	if err != nil {
		return nil, err
	}
	if err := t.checkEmpty(ctx, clients[0], o.prefix, advice); err != nil {
		closeAll()
		return nil, err
	}
	return &checking{conn: c, clients: clients, close: closeAll, amount: amount, sizeBytes: t.dbSize(ctx, clients[0])}, nil
}

// dialMany opens clients that each have a connection of their own.
func (t *tree) dialMany(ctx context.Context, c etcd.Config, n int) (clients []*clientv3.Client, closeAll func(), err error) {
	closeAll = func() {
		for _, c := range clients {
			_ = c.Close()
		}
	}
	for range n {
		// They outlive a signal, so that the writes can be taken back.
		client, err := t.dial(context.WithoutCancel(ctx), c)
		if err != nil {
			closeAll()
			return nil, func() {}, err
		}
		clients = append(clients, client)
	}
	return clients, closeAll, nil
}

// checkEmpty refuses a prefix that has keys: they would be deleted.
func (t *tree) checkEmpty(ctx context.Context, client *clientv3.Client, prefix, advice string) error {
	if !t.upstream() {
		var cancel context.CancelFunc
		ctx, cancel = t.Timeout(ctx)
		defer cancel()
	}
	err := load.Check(ctx, client, prefix)
	if errors.Is(err, load.ErrNotEmpty) {
		return code(exitInvalidInput, "prefix %q has keys. Delete with %s first", prefix, advice)
	}
	return err
}

// writeTimeout bounds each write of a check: a member that is stopped would keep
// it for good. Upstream's writes have no bound.
func (t *tree) writeTimeout() time.Duration {
	if t.upstream() {
		return 0
	}
	return t.Global.CommandTimeout
}

// cleaning is what the cleanup of a check left.
type cleaning struct {
	SizeBefore int64  `json:"dbSizeBytesBefore"`
	SizeAfter  int64  `json:"dbSizeBytesAfter"`
	Error      string `json:"cleanupError,omitempty"`
}

// dbSize is the size of the first endpoint's database, 0 if it is not known.
func (t *tree) dbSize(ctx context.Context, client *clientv3.Client) int64 {
	ctx, cancel := t.Timeout(context.WithoutCancel(ctx))
	defer cancel()
	status, err := client.Status(ctx, client.Endpoints()[0])
	if err != nil {
		return 0
	}
	return status.DbSize
}

// cleanUp takes back what a check wrote: its keys, their history, and the space
// in the files, where the flags say so. It is for the native dialect.
func (t *tree) cleanUp(ctx context.Context, client *clientv3.Client, o checkOptions) error {
	if !o.autoCompact {
		_, err := load.Remove(ctx, client, o.prefix)
		return err
	}
	if err := load.Purge(ctx, client, o.prefix); err != nil || !o.autoDefrag {
		return err
	}
	tools, endpoints, err := t.Tools(context.WithoutCancel(ctx), nil)
	if err != nil {
		return err
	}
	_, err = health.Defrag(context.WithoutCancel(ctx), tools, endpoints, health.DefragOptions{All: true, Pause: 0})
	return err
}

// tellErrors tells what went wrong with writes, and how often.
func tellErrors(w io.Writer, errs map[string]int) {
	if len(errs) == 0 {
		return
	}
	fmt.Fprintln(w, "FAIL: too many errors")
	for text, n := range errs {
		fmt.Fprintf(w, "FAIL: ERROR(%v) -> %d\n", text, n)
	}
}

// upstreamCleanUp compacts and defragments where the flags say so.
func (t *tree) upstreamCleanUp(ctx context.Context, client *clientv3.Client, o checkOptions, revision int64) error {
	if o.autoCompact && revision > 0 {
		if err := t.upstreamCompact(ctx, client, revision); err != nil {
			return err
		}
	}
	if !o.autoDefrag {
		return nil
	}
	return t.upstreamDefrag(ctx, client)
}

// upstreamCompact and upstreamDefrag tell what they do as etcdctl does.
func (t *tree) upstreamCompact(ctx context.Context, client *clientv3.Client, revision int64) error {
	fmt.Fprintf(t.Out, "Compacting with revision %d\n", revision)
	if err := load.Compact(ctx, client, revision); err != nil {
		return err
	}
	fmt.Fprintf(t.Out, "Compacted with revision %d\n", revision)
	return nil
}

func (t *tree) upstreamDefrag(ctx context.Context, client *clientv3.Client) error {
	for _, ep := range client.Endpoints() {
		fmt.Fprintf(t.Out, "Defragmenting %q\n", ep)
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		_, err := client.Defragment(bounded, ep)
		cancel()
		if err != nil {
			return err
		}
		fmt.Fprintf(t.Out, "Defragmented %q\n", ep)
	}
	return nil
}
