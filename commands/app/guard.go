package app

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/output"
)

// Confirm asks before something that cannot be undone. It returns nil for yes.
// --yes answers; without it and without a terminal the answer is no.
func (a *App) Confirm(question string) error {
	if a.Global.Yes {
		return nil
	}
	question = output.PrintableLines(question)
	yes, err := a.Ask(question)
	switch {
	case errors.Is(err, cli.ErrNoTerminal):
		return cli.Guard(hint.With(fmt.Errorf("not done without a confirmation: %s", question), "--yes confirms it"))
	case err != nil:
		return cli.Guard(err)
	case !yes:
		return cli.Guard(errors.New("not confirmed, nothing was changed"))
	}
	return nil
}

// checkClusterID compares the cluster's id with --expect-cluster-id.
func (a *App) checkClusterID(ctx context.Context, client *clientv3.Client) error {
	want := a.Global.ExpectClusterID
	if want == "" {
		return nil
	}
	id, err := strconv.ParseUint(strings.TrimPrefix(want, "0x"), 16, 64)
	if err != nil {
		return cli.Usagef("--expect-cluster-id %q is not a cluster id: up to 16 hexadecimal digits are", want)
	}
	got, err := a.clusterID(ctx, client)
	if err != nil {
		return err
	}
	if got != id {
		return cli.Guard(hint.With(fmt.Errorf("this is cluster %s, not %s", output.ID(got), output.ID(id)), "check --endpoints, the variables and the context"))
	}
	return nil
}

// clusterID asks for the cluster's id, each endpoint with a deadline of its own,
// so that one which does not answer keeps no other from being asked.
func (a *App) clusterID(ctx context.Context, client *clientv3.Client) (uint64, error) {
	reading, cancel := a.Timeout(ctx)
	defer cancel()
	// Serializable, so that it works on a cluster that has lost quorum too.
	resp, err := client.Get(reading, "\x00", clientv3.WithSerializable(), clientv3.WithCountOnly())
	if err == nil {
		return resp.Header.ClusterId, nil
	}
	for _, ep := range client.Endpoints() {
		asking, cancel := a.Timeout(ctx)
		status, statusErr := client.Status(asking, ep)
		cancel()
		if statusErr == nil {
			return status.Header.ClusterId, nil
		}
	}
	return 0, fmt.Errorf("check the cluster id: %w", err)
}
