package ctl

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/etcdkit/etcdkit/internal/etcd"
	"github.com/etcdkit/etcdkit/internal/output"
)

func newEndpointCmd(t *tree) *cobra.Command {
	var cluster bool
	cmd := t.group("endpoint <subcommand>", "Endpoint related commands. Use `etcdctl endpoint --help` to see subcommands", "Endpoint related commands", groupMaintenance,
		newEndpointHealthCmd(t, &cluster), newEndpointStatusCmd(t, &cluster), newEndpointHashKVCmd(t, &cluster))
	clusterFlag(cmd, &cluster)
	return cmd
}

// visit runs fn for each target with a client for it alone and returns the
// errors in order. Natively all are visited at once, so that one which does not
// answer costs its timeout only once.
func (t *tree) visit(ctx context.Context, c etcd.Config, targets []string, fn func(ctx context.Context, i int, client *clientv3.Client) error) ([]error, error) {
	errs := make([]error, len(targets))
	if t.upstream() {
		for i, ep := range targets {
			client, err := t.dial(ctx, c.At(ep))
			if err != nil {
				return nil, err
			}
			errs[i] = t.bounded(ctx, func(ctx context.Context) error { return fn(ctx, i, client) })
			if err := client.Close(); err != nil && errs[i] == nil {
				errs[i] = err
			}
		}
		return errs, nil
	}
	var g errgroup.Group
	for i, ep := range targets {
		g.Go(func() error {
			errs[i] = t.visitOne(ctx, c.At(ep), func(ctx context.Context, client *clientv3.Client) error { return fn(ctx, i, client) })
			return nil
		})
	}
	return errs, g.Wait()
}

// visitOne runs fn on one endpoint and explains its failure.
func (t *tree) visitOne(ctx context.Context, c etcd.Config, fn func(context.Context, *clientv3.Client) error) error {
	client, err := t.dial(ctx, c)
	if err != nil {
		return err
	}
	err = t.bounded(ctx, func(ctx context.Context) error { return fn(ctx, client) })
	return errors.Join(etcd.Diagnose(ctx, c, err), client.Close())
}

func (t *tree) bounded(ctx context.Context, fn func(context.Context) error) error {
	ctx, cancel := t.Timeout(ctx)
	defer cancel()
	return fn(ctx)
}

// failed returns the error of a visit that not every endpoint answered, after
// the answers were shown: the last one under upstream's name, all natively.
func (t *tree) failed(targets []string, errs []error) error {
	var all []error
	for _, err := range errs {
		if err != nil {
			all = append(all, err)
		}
	}
	switch {
	case len(all) == 0:
		return nil
	case t.upstream():
		return all[len(all)-1]
	}
	return fmt.Errorf("%d of %s did not answer: %w", len(all), output.Count(len(targets), "endpoint"), errors.Join(all...))
}
