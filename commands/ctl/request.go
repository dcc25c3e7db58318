package ctl

import (
	"context"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// request makes one request within --command-timeout, which begins to count
// before the environment is read: under upstream's name only the flag sets it.
func (t *tree) request(ctx context.Context, do func(context.Context, *clientv3.Client) error) error {
	bounded, cancel := t.Timeout(ctx)
	defer cancel()
	client, err := t.client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	return do(bounded, client)
}

// write makes one request that changes keys, natively once the guards let it
// pass. stdinIsData says that standard input may have described it.
func (t *tree) write(ctx context.Context, op clientv3.Op, stdinIsData bool) (resp clientv3.OpResponse, err error) {
	reqCtx, cancel := t.Timeout(ctx)
	defer cancel()
	client, err := t.client(ctx)
	if err != nil {
		return resp, err
	}
	defer client.Close()
	if !t.upstream() {
		if err := t.guard(ctx, client, stdinIsData, op); err != nil {
			return resp, err
		}
		reqCtx, cancel = t.Timeout(ctx) // the answer may have taken a while
		defer cancel()
	}
	return client.Do(reqCtx, op)
}

// unbounded makes requests that upstream sets no deadline. Natively each has
// --command-timeout.
func (t *tree) unbounded(ctx context.Context, do func(context.Context, *clientv3.Client) error) error {
	if !t.upstream() {
		return t.request(ctx, do)
	}
	client, err := t.client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	return do(ctx, client)
}

// nativeTable is a table that upstream does not offer.
func (t *tree) nativeTable(table func() ([]string, [][]string)) func() ([]string, [][]string) {
	if t.upstream() {
		return nil
	}
	return table
}

// clusterFlag defines --cluster.
func clusterFlag(cmd *cobra.Command, cluster *bool) {
	cmd.PersistentFlags().BoolVar(cluster, "cluster", false, "use all endpoints from the cluster member list")
}
