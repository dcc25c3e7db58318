package ctl

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/types"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/health"
	"github.com/etcdkit/etcdkit/internal/etcd"
	"github.com/etcdkit/etcdkit/internal/hint"
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
	if t.upstream() {
		return t.upstreamMoveLeader(ctx, c, target)
	}
	target, endpoints, err := t.transferee(ctx, c, args[0])
	if err != nil {
		return err
	}
	client, leader, err := t.findLeader(ctx, c, endpoints)
	if err != nil {
		return err
	}
	defer client.Close()
	return t.moveLeader(ctx, client, leader, target)
}

func (t *tree) moveLeader(ctx context.Context, client *clientv3.Client, leader, target uint64) error {
	ctx, cancel := t.Timeout(ctx)
	defer cancel()
	resp, err := client.MoveLeader(ctx, target)
	if err != nil {
		return err
	}
	return t.print(t.moveLeaderResult(leader, target, (*pb.MoveLeaderResponse)(resp)))
}

// upstreamMoveLeader has one deadline for all endpoints, and gives up at the
// first that does not answer.
func (t *tree) upstreamMoveLeader(ctx context.Context, c etcd.Config, target uint64) error {
	bounded, cancel := t.Timeout(ctx)
	defer cancel()
	for _, ep := range c.Endpoints {
		client, err := t.dial(ctx, c.At(ep))
		if err != nil {
			return err
		}
		status, err := client.Status(bounded, ep)
		if err == nil && leads(status) {
			return errors.Join(t.moveLeader(bounded, client, status.Leader, target), client.Close())
		}
		if closeErr := client.Close(); err != nil {
			return errors.Join(err, closeErr)
		}
	}
	return badArgs("no leader endpoint given at %v", c.Endpoints)
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
	members, err := t.ListMembers(ctx, c)
	if err != nil {
		return 0, nil, err
	}
	m, err := health.Resolve(health.Listed(members), arg)
	if err != nil {
		return 0, nil, app.Judged(err)
	}
	endpoints := unique(c.Endpoints)
	for _, v := range t.Visits(ctx, c, members) {
		endpoints = append(endpoints, v.Endpoint)
	}
	return m.ID, unique(endpoints), nil
}

// leaderGrace is how long other endpoints may take to contradict the first that
// says it leads: one that is cut off believes so for a while.
const leaderGrace = time.Second

// findLeader asks all endpoints at once, each with its own deadline, and returns
// a client for the one that leads in the newest term.
func (t *tree) findLeader(ctx context.Context, c etcd.Config, endpoints []string) (*clientv3.Client, uint64, error) {
	clients, statuses, errs := make([]*clientv3.Client, len(endpoints)), make([]*clientv3.StatusResponse, len(endpoints)), make([]error, len(endpoints))
	asking, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	for i, ep := range endpoints {
		wg.Go(func() {
			clients[i], errs[i] = t.dial(ctx, c.At(ep))
			if errs[i] != nil {
				return
			}
			errs[i] = t.bounded(asking, func(ctx context.Context) (err error) {
				statuses[i], err = clients[i].Status(ctx, ep)
				return etcd.Diagnose(ctx, c.At(ep), err)
			})
			if errs[i] == nil && leads(statuses[i]) {
				time.AfterFunc(leaderGrace, stop)
			}
		})
	}
	wg.Wait()
	best := -1
	for i, s := range statuses {
		if errs[i] == nil && leads(s) && (best < 0 || s.RaftTerm > statuses[best].RaftTerm) {
			best = i
		}
	}
	for i, client := range clients {
		if i != best && client != nil {
			errs[i] = errors.Join(errs[i], client.Close())
		}
	}
	if best < 0 {
		return nil, 0, hint.With(fmt.Errorf("no endpoint leads: %w", errors.Join(append(errs, errNoLeader)...)), "see what is wrong with: etcdkit health")
	}
	return clients[best], statuses[best].Leader, nil
}

// errNoLeader is why a leader cannot be moved when every endpoint answers.
var errNoLeader = errors.New("the leader is not among those that answered")

func leads(s *clientv3.StatusResponse) bool { return s.Header.GetMemberId() == s.Leader }

func (t *tree) moveLeaderResult(leader, target uint64, r *pb.MoveLeaderResponse) result {
	res := result{json: r, proto: r, simple: lines(fmt.Sprintf("Leadership transferred from %s to %s", types.ID(leader), types.ID(target)))}
	res.native = struct {
		From string `json:"from"`
		To   string `json:"to"`
	}{output.ID(leader), output.ID(target)}
	return res
}
