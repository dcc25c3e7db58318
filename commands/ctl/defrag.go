package ctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/health"
	"github.com/etcdkit/etcdkit/internal/etcd"
)

// defragged is one member's outcome.
type defragged struct {
	Endpoint    string  `json:"endpoint"`
	OK          bool    `json:"ok"`
	TookSeconds float64 `json:"tookSeconds"`
	Error       string  `json:"error,omitempty"`

	took time.Duration
}

type defragOptions struct {
	cluster bool
	stall   time.Duration
}

const defragHelp = `Rewrites the database file of each member, one after the other, in the order given;
a member serves nobody meanwhile. It has no timeout as long as the member gives
signs of life. The first failure ends it, since that member may be at it still; a
signal ends it after the member that is at it. For a plan with the leader last
and health gates see "etcdkit defrag-all".

  etcdkit defrag --endpoints https://10.0.0.1:2379

Exit codes: 0 all done, 1 one failed, 2 wrong usage.`

func newDefragCmd(t *tree) *cobra.Command {
	var opts defragOptions
	cmd := &cobra.Command{
		Use: "defrag", Short: "Defragments the storage of the etcd members with given endpoints",
		Long: t.long("", defragHelp), GroupID: groupMaintenance,
		RunE: t.run(func(ctx context.Context, args []string) error { return runDefrag(ctx, t, args, opts) }),
	}
	clusterFlag(cmd, &opts.cluster)
	if !t.upstream() {
		cmd.Flags().DurationVar(&opts.stall, "stall-timeout", 30*time.Second, "fail when a member shows no sign of life for this long")
	}
	return t.offer(cmd)
}

func runDefrag(ctx context.Context, t *tree, args []string, opts defragOptions) error {
	c, targets, err := t.visiting(ctx, args, &opts.cluster)
	if err != nil {
		return err
	}
	var all []defragged
	errs := make([]error, len(targets))
	for i, ep := range targets {
		if err := context.Cause(ctx); err != nil {
			return errors.Join(t.printDefrags(all), err)
		}
		start := time.Now()
		err := t.defragOne(ctx, c.At(ep), ep, opts.stall)
		if dialed, ok := errors.AsType[*codeError](err); ok && t.upstream() {
			return dialed
		}
		errs[i] = err
		all = append(all, t.tellDefrag(ep, time.Since(start), err))
		if err != nil && !t.upstream() { // the member may still be at it: no second one may stand still
			break
		}
	}
	if err := t.printDefrags(all); err != nil {
		return err
	}
	return t.defragFailed(targets, len(all), errs)
}

// longestDefrag is the longest that one member may take, whatever signs of
// life it gives.
const longestDefrag = 24 * time.Hour

// defragOne connects and has one member do it. Natively a signal waits for
// what the server works on already, as it goes on anyway.
func (t *tree) defragOne(ctx context.Context, c etcd.Config, endpoint string, stall time.Duration) error {
	running := ctx
	if !t.upstream() {
		var cancel context.CancelFunc
		running, cancel = context.WithTimeout(context.WithoutCancel(ctx), longestDefrag)
		defer cancel()
	}
	client, err := t.dial(running, c)
	if err == nil {
		err = errors.Join(t.defragment(running, client, endpoint, stall), client.Close())
	}
	if err != nil && !t.upstream() {
		err = etcd.Diagnose(ctx, c, err)
	}
	return err
}

// defragment asks for it, natively for as long as the member lives.
func (t *tree) defragment(ctx context.Context, client *clientv3.Client, endpoint string, stall time.Duration) error {
	ask := func(ctx context.Context) error {
		_, err := client.Defragment(ctx, endpoint)
		return err
	}
	if t.upstream() {
		return t.bounded(ctx, ask)
	}
	return health.Attended(ctx, client, stall, ask)
}

// tellDefrag tells of one member as soon as it is done, where the output is
// made of words.
func (t *tree) tellDefrag(endpoint string, took time.Duration, err error) defragged {
	d := defragged{Endpoint: endpoint, OK: err == nil, TookSeconds: took.Seconds(), took: took}
	if err != nil {
		d.Error = err.Error()
	}
	if t.upstream() {
		t.defragLine(t.Out, t.Err, d)
	}
	return d
}

func (t *tree) defragLine(good, bad io.Writer, d defragged) {
	if d.OK {
		fmt.Fprintf(good, "Finished defragmenting etcd member[%s]. took %s\n", d.Endpoint, d.took)
	} else {
		fmt.Fprintf(bad, "Failed to defragment etcd member[%s]. took %s. (%v)\n", d.Endpoint, d.took, d.Error)
	}
}

func (t *tree) printDefrags(all []defragged) error {
	if t.upstream() {
		return nil // told one by one
	}
	return t.print(result{
		native: all,
		simple: func(w io.Writer) {
			for _, d := range all {
				t.defragLine(w, w, d)
			}
		},
		table: func() ([]string, [][]string) {
			var rows [][]string
			for _, d := range all {
				rows = append(rows, []string{d.Endpoint, fmt.Sprint(d.OK), d.took.String(), d.Error})
			}
			return []string{"endpoint", "ok", "took", "error"}, rows
		},
	})
}

// defragFailed is the error of what failed, with the endpoints that were not
// reached for that.
func (t *tree) defragFailed(targets []string, visited int, errs []error) error {
	err := t.failed(targets, errs)
	switch {
	case err == nil:
		return nil
	case t.upstream():
		return errTold
	case visited == len(targets):
		return err
	}
	return fmt.Errorf("%w; not begun: %s", err, strings.Join(targets[visited:], ", "))
}
