package ctl

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/types"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/health"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/etcd"
	"github.com/etcdkit/etcdkit/internal/output"
)

func newMoveLeaderCmd(t *tree) *cobra.Command {
	var toAny bool
	cmd := &cobra.Command{
		Use: "move-leader <transferee-member-id>", Short: "Transfers leadership to another etcd cluster member.",
		Long: t.long("", `Hands leadership to the member named by its id, name, or peer or client URL. The
leader is found through the member list, so any endpoint will do. --to-any takes
the best of the other voters: one that serves reads, has applied most, and answers
fastest; where one does not take leadership, the next best is asked.

  etcdkit move-leader m2
  etcdkit move-leader --to-any

Exit codes: 0 moved, 1 failed, 2 wrong usage; with --to-any 4 nothing answered,
5 there is no quorum.`),
		GroupID: groupMaintenance,
		RunE: t.run(func(ctx context.Context, args []string) error {
			if toAny {
				return t.moveToAny(ctx, args)
			}
			return runMoveLeader(ctx, t, args)
		}),
	}
	if !t.upstream() {
		cmd.Flags().BoolVar(&toAny, "to-any", false, "to the best of the other voters")
	}
	return t.offer(cmd, output.Protobuf)
}

func runMoveLeader(ctx context.Context, t *tree, args []string) error {
	if len(args) != 1 {
		return badArgs("move-leader command needs 1 argument")
	}
	var target uint64
	var err error
	if t.upstream() {
		if target, err = strconv.ParseUint(args[0], 16, 64); err != nil {
			return badArgs("%w", err)
		}
	}
	c, err := t.connection()
	if err != nil {
		return err
	}
	endpoints := c.Endpoints
	if !t.upstream() {
		if target, endpoints, err = t.transferee(ctx, c, args[0]); err != nil {
			return err
		}
	}
	bounded, cancel := t.Timeout(ctx)
	defer cancel()
	client, leader, err := t.findLeader(ctx, bounded, c, endpoints)
	if err != nil {
		return err
	}
	defer client.Close()
	resp, err := client.MoveLeader(bounded, target)
	if err != nil {
		return err
	}
	return t.print(t.moveLeaderResult(leader, target, (*pb.MoveLeaderResponse)(resp)))
}

// moveToAny lets the cluster's state choose the new leader.
func (t *tree) moveToAny(ctx context.Context, args []string) error {
	if err := t.tooMany(args, 0); err != nil {
		return err
	}
	tools, endpoints, err := t.Tools(ctx, nil)
	if err != nil {
		return err
	}
	from, to, err := health.MoveToAny(ctx, tools, endpoints)
	if err != nil {
		return app.Judged(err)
	}
	return t.print(t.moveLeaderResult(from.ID, to.ID, &pb.MoveLeaderResponse{}))
}

// transferee returns the id of the member that arg means, and the endpoints of
// all members.
func (t *tree) transferee(ctx context.Context, c etcd.Config, arg string) (uint64, []string, error) {
	members, err := t.members(ctx, c)
	if err != nil {
		return 0, nil, err
	}
	m, err := findMember(members, arg)
	if err != nil {
		return 0, nil, cli.Usage(err)
	}
	endpoints := unique(c.Endpoints)
	for _, m := range members {
		if len(m.GetClientURLs()) > 0 {
			endpoints = append(endpoints, preferredURL(m, c.Endpoints))
		}
	}
	return m.GetID(), unique(endpoints), nil
}

// findLeader returns a client for the endpoint that leads. Upstream gives up at
// the first that does not answer.
func (t *tree) findLeader(ctx, bounded context.Context, c etcd.Config, endpoints []string) (*clientv3.Client, uint64, error) {
	for _, ep := range endpoints {
		client, err := t.dial(ctx, c.At(ep))
		if err != nil {
			return nil, 0, err
		}
		status, err := client.Status(bounded, ep)
		if err == nil && status.Header.GetMemberId() == status.Leader {
			return client, status.Leader, nil
		}
		if closeErr := client.Close(); err != nil && t.upstream() {
			return nil, 0, errors.Join(err, closeErr)
		}
	}
	return nil, 0, badArgs("no leader endpoint given at %v", endpoints)
}

func (t *tree) moveLeaderResult(leader, target uint64, r *pb.MoveLeaderResponse) result {
	res := result{json: r, proto: r, simple: lines(fmt.Sprintf("Leadership transferred from %s to %s", types.ID(leader), types.ID(target)))}
	res.native = struct {
		From string `json:"from"`
		To   string `json:"to"`
	}{output.ID(leader), output.ID(target)}
	return res
}
