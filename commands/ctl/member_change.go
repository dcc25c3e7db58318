package ctl

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/health"
	"github.com/etcdkit/etcdkit/internal/output"
)

func newMemberRemoveCmd(t *tree) *cobra.Command {
	cmd := &cobra.Command{
		Use: "remove <memberID>", Short: "Removes a member from the cluster",
		Long: t.long("", `Removes a member, named by its id, name, or peer or client URL. Removing a member
that answers costs a failure that the cluster could bear: where it would cost
quorum, the command refuses. A removed member cannot come back with its data.

  etcdkit member remove m3

Exit codes: 0 removed, 1 failed, 2 wrong usage, 5 refused: quorum is or would be
lost (--force overrides).`),
		RunE: t.run(func(ctx context.Context, args []string) error {
			return t.runMember(ctx, args, memberCommand{guard: health.GuardRemove, do: t.removeMember})
		}),
	}
	return t.offer(cmd, output.Protobuf)
}

func (t *tree) removeMember(ctx context.Context, c *clientv3.Client, id uint64) (result, error) {
	resp, err := c.MemberRemove(ctx, id)
	if err != nil {
		return result{}, err
	}
	r := (*pb.MemberRemoveResponse)(resp)
	return t.memberResult(result{json: r, proto: r, simple: changed(id, "removed from", r.GetHeader())}, r.GetHeader(), nil, r.GetMembers()), nil
}

func newMemberUpdateCmd(t *tree) *cobra.Command {
	var peerURLs string
	cmd := &cobra.Command{
		Use: "update <memberID> [options]", Short: "Updates a member in the cluster",
		Long: t.long("", `Changes the peer URLs by which the other members reach one, named by its id, name,
or peer or client URL. The member must listen there by then.

  etcdkit member update m2 --peer-urls https://10.0.0.12:2380

Exit codes: 0 updated, 1 failed, 2 wrong usage.`),
		RunE: t.run(func(ctx context.Context, args []string) error {
			ready := func() error {
				if peerURLs == "" {
					return badArgs("member peer urls not provided")
				}
				return nil
			}
			return t.runMember(ctx, args, memberCommand{ready: ready, do: func(ctx context.Context, c *clientv3.Client, id uint64) (result, error) {
				return t.updateMember(ctx, c, id, t.peerURLs(peerURLs))
			}})
		}),
	}
	cmd.Flags().StringVar(&peerURLs, "peer-urls", "", "comma separated peer URLs for the updated member.")
	return t.offer(cmd, output.Protobuf)
}

func (t *tree) updateMember(ctx context.Context, c *clientv3.Client, id uint64, peerURLs []string) (result, error) {
	resp, err := c.MemberUpdate(ctx, id, peerURLs)
	if err != nil {
		return result{}, err
	}
	r := (*pb.MemberUpdateResponse)(resp)
	return t.memberResult(result{json: r, proto: r, simple: changed(id, "updated in", r.GetHeader())}, r.GetHeader(), nil, r.GetMembers()), nil
}

type promoteOptions struct {
	wait     bool
	deadline time.Duration
}

func newMemberPromoteCmd(t *tree) *cobra.Command {
	var opts promoteOptions
	cmd := &cobra.Command{
		Use: "promote <memberID>", Short: "Promotes a non-voting member in the cluster",
		Long: t.long("Promotes a non-voting learner member to a voting one in the cluster.\n",
			`Gives a learner a vote, named by its id, name, or peer or client URL. The cluster
accepts that once the learner has caught up with the leader; --wait waits for it.
Its vote counts at once, so a learner that is not alive is refused: it must follow
the leader, and apply what is committed now.

  etcdkit member promote m4 --wait

Exit codes: 0 promoted, 1 failed, or with --wait not ready by --deadline, 2 wrong
usage, 5 refused: quorum is or would be lost, or the learner is not alive (--force
overrides).`),
		RunE: t.run(func(ctx context.Context, args []string) error {
			if opts.wait {
				return t.promoteWhenReady(ctx, args, opts)
			}
			return t.runMember(ctx, args, memberCommand{guard: health.GuardPromote, do: t.promoteMember})
		}),
	}
	if !t.upstream() {
		cmd.Flags().BoolVar(&opts.wait, "wait", false, "wait until the learner has started and caught up")
		cmd.Flags().DurationVar(&opts.deadline, "deadline", 10*time.Minute, "how long --wait waits")
	}
	return t.offer(cmd, output.Protobuf)
}

func (t *tree) promoteMember(ctx context.Context, c *clientv3.Client, id uint64) (result, error) {
	resp, err := c.MemberPromote(ctx, id)
	if err != nil {
		return result{}, err
	}
	r := (*pb.MemberPromoteResponse)(resp)
	return t.memberResult(result{json: r, proto: r, simple: changed(id, "promoted in", r.GetHeader())}, r.GetHeader(), nil, r.GetMembers()), nil
}

// promoteWhenReady waits for the learner, and tells how far it is.
func (t *tree) promoteWhenReady(ctx context.Context, args []string, opts promoteOptions) error {
	if len(args) != 1 {
		return badArgs("member ID is not provided")
	}
	tools, endpoints, err := t.Tools(ctx, nil)
	if err != nil {
		return err
	}
	facts, err := t.facts(ctx)
	if err != nil {
		return err
	}
	member, err := health.Resolve(facts.Listed(), args[0])
	if err != nil {
		return app.Judged(err)
	}
	err = health.Promote(ctx, tools, endpoints, member.ID, health.PromoteOptions{Deadline: opts.deadline, Progress: t.TellPromotion()})
	if err != nil {
		return app.Judged(err)
	}
	return t.changeMembers(ctx, facts, 0, func(ctx context.Context, client *clientv3.Client) error {
		resp, err := client.MemberList(ctx)
		if err != nil {
			return err
		}
		r := (*pb.MemberListResponse)(resp)
		return t.print(t.memberResult(result{json: r, proto: r, simple: changed(member.ID, "promoted in", r.GetHeader())}, r.GetHeader(), nil, r.GetMembers()))
	})
}

// changed is the sentence about a member that was changed.
func changed(id uint64, how string, header *pb.ResponseHeader) func(w io.Writer) {
	return lines(fmt.Sprintf("Member %16x %s cluster %16x", id, how, header.GetClusterId()))
}
