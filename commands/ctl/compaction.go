package ctl

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/health"
	"github.com/etcdkit/etcdkit/internal/cli"
)

const compactionHelp = `Drops the history of all keys before a revision; what the keys hold at that revision
and later stays. --physical waits until it is gone from the database file too, which
has no timeout as long as the member answers.

  etcdkit compaction 123456 --physical

Exit codes: 0 compacted, 1 failed (also when the revision is compacted already or
does not exist yet), 2 wrong usage.`

func newCompactionCmd(t *tree) *cobra.Command {
	var physical bool
	cmd := &cobra.Command{
		Use:     "compaction [options] <revision>",
		Short:   "Compacts the event history in etcd",
		Long:    t.long("", compactionHelp),
		GroupID: groupKV,
		RunE:    t.run(func(ctx context.Context, args []string) error { return runCompaction(ctx, t, args, physical) }),
	}
	cmd.Flags().BoolVar(&physical, "physical", false, "'true' to wait for compaction to physically remove all old revisions")
	return t.offer(cmd)
}

func runCompaction(ctx context.Context, t *tree, args []string, physical bool) error {
	if len(args) != 1 {
		return badArgs("compaction command needs 1 argument")
	}
	rev, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil {
		if t.upstream() {
			return err
		}
		return cli.Usagef("%q is not a revision", args[0])
	}
	client, err := t.client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := t.compact(ctx, client, rev, physical); err != nil {
		return err
	}
	if t.upstream() {
		_, err = fmt.Fprintln(t.Out, "compacted revision", rev)
		return err
	}
	return t.print(result{
		native: struct {
			Revision int64 `json:"compactedRevision"`
		}{rev},
		simple: lines("compacted revision " + args[0]),
	})
}

// compact sends the request. A physical compaction takes as long as it takes,
// so natively it is given up only when the cluster gives no sign of life.
func (t *tree) compact(ctx context.Context, client *clientv3.Client, rev int64, physical bool) error {
	var opts []clientv3.CompactOption
	if physical {
		opts = append(opts, clientv3.WithCompactPhysical())
	}
	ask := func(ctx context.Context) error {
		_, err := client.Compact(ctx, rev, opts...)
		return err
	}
	if t.upstream() || !physical {
		return t.bounded(ctx, ask)
	}
	return health.Attended(ctx, client, 0, ask)
}
