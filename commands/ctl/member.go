package ctl

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/health"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/hint"
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
	var id uint64
	if t.upstream() {
		var err error
		if id, err = strconv.ParseUint(args[0], 16, 64); err != nil {
			return badArgs("bad member ID arg (%w), expecting ID in Hex", err)
		}
	}
	if m.ready != nil {
		if err := m.ready(); err != nil {
			return err
		}
	}
	return t.request(ctx, func(bounded context.Context, client *clientv3.Client) error {
		if !t.upstream() {
			var err error
			if id, err = t.guardMember(ctx, bounded, client, args[0], m); err != nil {
				return err
			}
		}
		return t.changeMembers(ctx, bounded, func(ctx context.Context) error {
			r, err := m.do(ctx, client, id)
			if err != nil {
				return err
			}
			return t.print(r)
		})
	})
}

// changeMembers asks for a change. Natively it is asked again while servers that
// have just started still call the cluster unhealthy.
func (t *tree) changeMembers(ctx, bounded context.Context, change func(context.Context) error) error {
	if t.upstream() {
		return change(bounded)
	}
	return health.Patiently(ctx, change)
}

// guardMember finds the member that arg means, and refuses the change if it
// would cost quorum, unless --force.
func (t *tree) guardMember(ctx, bounded context.Context, client *clientv3.Client, arg string, m memberCommand) (uint64, error) {
	list, err := client.MemberList(bounded, clientv3.WithSerializable())
	if err != nil {
		return 0, err
	}
	member, err := findMember(list.Members, arg)
	if err != nil {
		return 0, cli.Usage(err)
	}
	if m.guard == nil || t.Global.Force {
		return member.GetID(), nil
	}
	facts, err := t.facts(ctx)
	if err != nil {
		return 0, err
	}
	change, err := m.guard(facts, member.GetID())
	if err != nil {
		return 0, app.Judged(err)
	}
	if change.Before != change.After {
		t.Note("%s", change)
	}
	return member.GetID(), nil
}

// facts asks all members who they are and whether they answer.
func (t *tree) facts(ctx context.Context) (health.Facts, error) {
	doors, endpoints, err := t.Doors(ctx, nil)
	if err != nil {
		return health.Facts{}, err
	}
	doors.Scrape, doors.Handshake = nil, nil
	return health.Gather(ctx, doors, endpoints, health.Options{Timeout: t.Global.CommandTimeout, Reads: 1})
}

// findMember returns the one member that arg means: by id in hex, name, peer URL
// or client URL.
func findMember(members []*pb.Member, arg string) (*pb.Member, error) {
	var found []*pb.Member
	id, err := strconv.ParseUint(strings.TrimPrefix(arg, "0x"), 16, 64)
	isID := err == nil
	for _, m := range members {
		if isID && m.GetID() == id || m.GetName() != "" && m.GetName() == arg || slices.Contains(m.GetPeerURLs(), arg) || slices.Contains(m.GetClientURLs(), arg) {
			found = append(found, m)
		}
	}
	var known []string
	for _, m := range members {
		known = append(known, strings.TrimSpace(fmt.Sprintf("%x %s", m.GetID(), m.GetName())))
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return nil, hint.With(fmt.Errorf("no member is called %q", arg), "the members are %s", strings.Join(known, ", "))
	}
	return nil, hint.With(fmt.Errorf("%q means %d members", arg, len(found)), "name it by its id: %s", strings.Join(known, ", "))
}

// memberResult is the answer to a change of membership.
func (t *tree) memberResult(r result, header *pb.ResponseHeader, member *pb.Member, members []*pb.Member) result {
	r.hexJSON = hexMembers{header, member, members}
	if !t.upstream() {
		r.table = t.memberListResult(&pb.MemberListResponse{Header: header, Members: members}).table
	}
	return r
}

func splitURLs(text string) []string { return strings.Split(text, ",") }
