package ctl

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/health"
)

func newMemberCmd(t *tree) *cobra.Command {
	return t.group("member <subcommand>", "Membership related commands. Use `etcdctl member --help` to see subcommands", "Membership related commands", groupMaintenance,
		newMemberAddCmd(t), newMemberRemoveCmd(t), newMemberUpdateCmd(t), newMemberListCmd(t), newMemberPromoteCmd(t))
}

// A memberCommand names one member and changes something about it.
type memberCommand struct {
	ready func() error // checks the flags
	// guard refuses a change that would cost quorum. Natively only.
	guard func(facts health.Facts, id uint64) (health.Change, error)
	do    func(ctx context.Context, c *clientv3.Client, id uint64) (result, error)
}

func (t *tree) runMember(ctx context.Context, args []string, m memberCommand) error {
	if len(args) != 1 {
		return badArgs("member ID is not provided")
	}
	if !t.upstream() {
		return t.runNativeMember(ctx, args[0], m)
	}
	id, err := strconv.ParseUint(args[0], 16, 64)
	if err != nil {
		return badArgs("bad member ID arg (%w), expecting ID in Hex", err)
	}
	if m.ready != nil {
		if err := m.ready(); err != nil {
			return err
		}
	}
	return t.request(ctx, func(ctx context.Context, client *clientv3.Client) error {
		return t.printed(m.do(ctx, client, id))
	})
}

// runNativeMember looks at all members first: which one is meant, what the
// change does to quorum, and through whom to ask for it.
func (t *tree) runNativeMember(ctx context.Context, arg string, m memberCommand) error {
	if m.ready != nil {
		if err := m.ready(); err != nil {
			return err
		}
	}
	facts, err := t.facts(ctx)
	if err != nil {
		return err
	}
	member, err := health.Resolve(facts.Listed(), arg)
	if err != nil {
		return app.Judged(err)
	}
	if m.guard != nil {
		if err := t.allow(m.guard(facts, member.ID)); err != nil {
			return err
		}
	}
	return t.changeMembers(ctx, facts, member.ID, func(ctx context.Context, client *clientv3.Client) error {
		return t.printed(m.do(ctx, client, member.ID))
	})
}

// printed prints the result of a request that succeeded.
func (t *tree) printed(r result, err error) error {
	if err != nil {
		return err
	}
	return t.print(r)
}

// allow refuses a change that would cost quorum, unless --force, and shows the
// arithmetic of one that does not.
func (t *tree) allow(change health.Change, err error) error {
	if err != nil && t.Global.Force {
		t.Warn("%v: going on because of --force", err)
		return nil
	}
	if err != nil {
		return app.Judged(err)
	}
	if change.Before != change.After {
		t.Note("%s", change)
	}
	return nil
}

// changeMembers asks a voter that is alive, best one that stays, for a change,
// and again while servers that have just started call the cluster unhealthy.
func (t *tree) changeMembers(ctx context.Context, facts health.Facts, leaving uint64, change func(context.Context, *clientv3.Client) error) error {
	c, err := t.connection()
	if err != nil {
		return err
	}
	if m, ok := facts.Speaker(leaving); ok {
		c = c.At(m.Endpoint)
	}
	client, err := t.dial(ctx, c)
	if err != nil {
		return err
	}
	defer client.Close()
	return health.Patiently(ctx, func(ctx context.Context) error { return change(ctx, client) })
}

// facts asks all members who they are and whether they are alive. Without a
// member list there is nothing to decide on: the error says why it is missing.
func (t *tree) facts(ctx context.Context) (health.Facts, error) {
	doors, endpoints, err := t.Doors(ctx, nil)
	if err != nil {
		return health.Facts{}, err
	}
	doors.Scrape, doors.Handshake = nil, nil
	facts, err := health.Gather(ctx, doors, endpoints, health.Options{Timeout: t.Global.CommandTimeout, Reads: 1})
	if err != nil || len(facts.Listed()) > 0 {
		return facts, app.Judged(err)
	}
	c, err := t.connection()
	if err != nil {
		return facts, err
	}
	_, err = t.ListMembers(ctx, c)
	return facts, err
}

// memberResult is the answer to a change of membership.
func (t *tree) memberResult(r result, header *pb.ResponseHeader, member *pb.Member, members []*pb.Member) result {
	r.hexJSON = hexMembers{header, member, members}
	if !t.upstream() {
		r.table = t.memberListResult(&pb.MemberListResponse{Header: header, Members: members}).table
	}
	return r
}

// peerURLs reads a flag, natively without the closing slashes that etcd refuses.
func (t *tree) peerURLs(text string) []string {
	if t.upstream() {
		return splitURLs(text)
	}
	return health.CleanURLs(splitURLs(text))
}

func splitURLs(text string) []string { return strings.Split(text, ",") }
