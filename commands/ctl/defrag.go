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
	"github.com/etcdkit/etcdkit/internal/output"
)

// defragged is one member's outcome.
type defragged struct {
	Endpoint    string  `json:"endpoint"`
	OK          bool    `json:"ok"`
	TookSeconds float64 `json:"tookSeconds"`
	SizeBefore  int64   `json:"dbSizeBytesBefore,omitempty"`
	SizeAfter   int64   `json:"dbSizeBytesAfter,omitempty"`
	Error       string  `json:"error,omitempty"`

	took time.Duration
}

// sizes tells how the file changed, where the member told both sizes.
func (d defragged) sizes() string {
	if d.SizeBefore == 0 || d.SizeAfter == 0 {
		return ""
	}
	return output.SizeChange(d.SizeBefore, d.SizeAfter)
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
	if err := t.OneCluster(ctx, c); err != nil {
		return err
	}
	var all []defragged
	errs := make([]error, len(targets))
	for i, ep := range targets {
		if err := context.Cause(ctx); err != nil {
			return errors.Join(t.printDefrags(all), err)
		}
		d := defragged{Endpoint: ep}
		start := time.Now()
		err := t.defragOne(ctx, c.At(ep), &d, opts.stall)
		if dialed, ok := errors.AsType[*codeError](err); ok && t.upstream() {
			return dialed
		}
		errs[i] = err
		all = append(all, t.tellDefrag(d, time.Since(start), err))
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
func (t *tree) defragOne(ctx context.Context, c etcd.Config, d *defragged, stall time.Duration) error {
	running := ctx
	if !t.upstream() {
		var cancel context.CancelFunc
		running, cancel = context.WithTimeout(context.WithoutCancel(ctx), longestDefrag)
		defer cancel()
	}
	client, err := t.dial(running, c)
	if err == nil {
		err = errors.Join(t.defragment(running, client, d, stall), client.Close())
	}
	if err != nil && !t.upstream() {
		err = etcd.Diagnose(ctx, c, err)
	}
	return err
}

// defragment asks for it, natively for as long as the member lives.
func (t *tree) defragment(ctx context.Context, client *clientv3.Client, d *defragged, stall time.Duration) error {
	ask := func(ctx context.Context) error {
		_, err := client.Defragment(ctx, d.Endpoint)
		return err
	}
	if t.upstream() {
		return t.bounded(ctx, ask)
	}
	before := t.sizeOf(ctx, client, d.Endpoint)
	if err := health.Attended(ctx, client, stall, ask); err != nil {
		return err
	}
	d.SizeBefore, d.SizeAfter = before, t.sizeOf(ctx, client, d.Endpoint)
	return nil
}

// sizeOf returns the size of a member's database, 0 where it does not tell.
func (t *tree) sizeOf(ctx context.Context, client *clientv3.Client, endpoint string) int64 {
	ctx, cancel := t.Timeout(ctx)
	defer cancel()
	status, err := client.Status(ctx, endpoint)
	if err != nil {
		return 0
	}
	return status.DbSize
}

// tellDefrag tells of one member as soon as it is done, where the output is
// made of words.
func (t *tree) tellDefrag(d defragged, took time.Duration, err error) defragged {
	d.OK, d.TookSeconds, d.took = err == nil, took.Seconds(), took
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
		line := fmt.Sprintf("Finished defragmenting etcd member[%s]. took %s", d.Endpoint, d.took)
		if sizes := d.sizes(); sizes != "" {
			line += "; " + sizes
		}
		fmt.Fprintln(good, line)
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
				rows = append(rows, []string{d.Endpoint, fmt.Sprint(d.OK), d.took.String(), d.sizes(), d.Error})
			}
			return []string{"endpoint", "ok", "took", "size", "error"}, rows
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
