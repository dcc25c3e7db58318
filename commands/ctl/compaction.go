package ctl

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/etcd"
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
	ctx, cancel := t.compactionTimeout(ctx, client, physical)
	defer cancel()
	var opts []clientv3.CompactOption
	if physical {
		opts = append(opts, clientv3.WithCompactPhysical())
	}
	if _, err := client.Compact(ctx, rev, opts...); err != nil {
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

// compactionTimeout bounds the request. A physical compaction takes as long as
// it takes, so natively it is given up only when the cluster stops answering.
func (t *tree) compactionTimeout(ctx context.Context, client *clientv3.Client, physical bool) (context.Context, context.CancelFunc) {
	if t.upstream() || !physical {
		return t.Timeout(ctx)
	}
	return etcd.WhileAnswering(ctx, client, 30*time.Second)
}
