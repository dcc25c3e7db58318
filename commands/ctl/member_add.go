package ctl

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/health"
	"github.com/etcdkit/etcdkit/internal/output"
)

type memberAddOptions struct {
	peerURLs string
	learner  bool
}

const memberAddHelp = `Tells the cluster of a new member, before it is started for the first time, and
prints the settings to start it with, and the whole command. It becomes a learner,
which has no vote and so cannot cost quorum: promote it when it has caught up
("member promote --wait").
--learner=false gives it a vote at once, which is refused where the cluster would
lose quorum until it runs.

  etcdkit member add m4 --peer-urls https://10.0.0.4:2380

Exit codes: 0 added, 1 failed, 2 wrong usage, 5 refused: quorum is or would be
lost (--force overrides).`

func newMemberAddCmd(t *tree) *cobra.Command {
	var opts memberAddOptions
	cmd := &cobra.Command{
		Use: "add <memberName> [options]", Short: "Adds a member into the cluster",
		Long: t.long("", memberAddHelp),
		RunE: t.run(func(ctx context.Context, args []string) error { return runMemberAdd(ctx, t, args, opts) }),
	}
	cmd.Flags().StringVar(&opts.peerURLs, "peer-urls", "", "comma separated peer URLs for the new member.")
	cmd.Flags().BoolVar(&opts.learner, "learner", t.Dialect.AddsLearners(), "indicates if the new member is raft learner")
	return t.offer(cmd, output.Protobuf)
}

func runMemberAdd(ctx context.Context, t *tree, args []string, opts memberAddOptions) error {
	if err := opts.check(args); err != nil {
		return err
	}
	add := func(ctx context.Context, client *clientv3.Client) error {
		add := client.MemberAdd
		if opts.learner {
			add = client.MemberAddAsLearner
		}
		resp, err := add(ctx, splitURLs(opts.peerURLs))
		if err != nil {
			return err
		}
		t.tellStart(args[0], opts.peerURLs, (*pb.MemberAddResponse)(resp))
		return t.print(t.memberAddResult(args[0], opts.peerURLs, (*pb.MemberAddResponse)(resp)))
	}
	if t.upstream() {
		return t.request(ctx, add)
	}
	opts.peerURLs = strings.Join(health.CleanURLs(splitURLs(opts.peerURLs)), ",")
	facts, err := t.facts(ctx)
	if err != nil {
		return err
	}
	if err := t.allow(health.GuardAdd(facts, opts.learner)); err != nil {
		return err
	}
	return t.changeMembers(ctx, facts, 0, add)
}

func (o memberAddOptions) check(args []string) error {
	if len(args) == 0 {
		return badArgs("member name not provided")
	}
	if len(args) > 1 {
		text := "too many arguments"
		for _, a := range args {
			if strings.HasPrefix(strings.ToLower(a), "http") {
				text += ", did you mean --peer-urls=" + a
			}
		}
		return badArgs("%s", text)
	}
	if o.peerURLs == "" {
		return badArgs("member peer urls not provided")
	}
	return nil
}

func (t *tree) memberAddResult(name, peerURLs string, r *pb.MemberAddResponse) result {
	return t.memberResult(result{
		json: r, proto: r,
		simple: func(w io.Writer) {
			as := " "
			if r.GetMember().GetIsLearner() {
				as = " as learner "
			}
			fmt.Fprintf(w, "Member %16x added%sto cluster %16x\n\n", r.GetMember().GetID(), as, r.GetHeader().GetClusterId())
			fmt.Fprintf(w, "ETCD_NAME=%q\n", name)
			fmt.Fprintf(w, "ETCD_INITIAL_CLUSTER=%q\n", initialCluster(name, r))
			fmt.Fprintf(w, "ETCD_INITIAL_ADVERTISE_PEER_URLS=%q\n", peerURLs)
			fmt.Fprintf(w, "ETCD_INITIAL_CLUSTER_STATE=%q\n", "existing")
		},
	}, r.GetHeader(), r.GetMember(), r.GetMembers())
}

// tellStart shows the whole command that starts the new member, beside the
// result: scripts read that as upstream prints it.
func (t *tree) tellStart(name, peerURLs string, r *pb.MemberAddResponse) {
	if t.upstream() || t.Global.Quiet {
		return
	}
	fmt.Fprintf(t.Err, "start it with an empty data directory, its own TLS flags added:\n\n%s\n\n",
		health.StartCommand(name, splitURLs(peerURLs), health.Listed(r.GetMembers())))
}

// initialCluster lists all members as a starting one wants them. The new one
// has no name in the cluster yet.
func initialCluster(name string, r *pb.MemberAddResponse) string {
	var all []string
	for _, m := range r.GetMembers() {
		n := m.GetName()
		if m.GetID() == r.GetMember().GetID() {
			n = name
		}
		for _, u := range m.GetPeerURLs() {
			all = append(all, n+"="+u)
		}
	}
	return strings.Join(all, ",")
}
