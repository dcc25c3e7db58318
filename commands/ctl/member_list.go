package ctl

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/output"
)

func newMemberListCmd(t *tree) *cobra.Command {
	var consistency string
	cmd := &cobra.Command{
		Use: "list", Short: "Lists all members in the cluster",
		Long: t.long("When --write-out is set to simple, this command prints out comma-separated member lists for each endpoint.\n"+
			"The items in the lists are ID, Status, Name, Peer Addrs, Client Addrs, Is Learner.\n",
			`Lists the members of the cluster. As words, the columns are ID, status, name, peer
addresses, client addresses, is learner. A cluster without a leader can still be
asked with --consistency=s.

  etcdkit member list -w table

Exit codes: 0 listed, 1 failed, 2 wrong usage.`),
		RunE: t.run(func(ctx context.Context, args []string) error { return runMemberList(ctx, t, args, consistency) }),
	}
	cmd.Flags().StringVar(&consistency, "consistency", "l", "Linearizable(l) or Serializable(s)")
	return t.offer(cmd, output.Table, output.Fields, output.Protobuf)
}

func runMemberList(ctx context.Context, t *tree, args []string, consistency string) error {
	var opts []clientv3.OpOption
	switch consistency {
	case "l":
	case "s":
		opts = append(opts, clientv3.WithSerializable())
	default:
		return code(exitBadFeature, "unknown consistency flag %q", t.consistencyInError(consistency))
	}
	if err := t.tooMany(args, 0); err != nil {
		return err
	}
	return t.request(ctx, func(ctx context.Context, client *clientv3.Client) error {
		resp, err := client.MemberList(ctx, opts...)
		if err != nil {
			return err
		}
		return t.print(t.memberListResult((*pb.MemberListResponse)(resp)))
	})
}

// consistencyInError is the value that an error names: upstream always shows
// the one of get.
func (t *tree) consistencyInError(typed string) string {
	if t.upstream() {
		return "l"
	}
	return typed
}

func (t *tree) memberListResult(r *pb.MemberListResponse) result {
	table := func() ([]string, [][]string) {
		var rows [][]string
		for _, m := range r.GetMembers() {
			status := "started"
			if m.GetName() == "" {
				status = "unstarted"
			}
			rows = append(rows, []string{
				fmt.Sprintf("%x", m.GetID()), status, m.GetName(),
				strings.Join(m.GetPeerURLs(), ","), strings.Join(m.GetClientURLs(), ","), strconv.FormatBool(m.GetIsLearner()),
			})
		}
		return []string{"ID", "Status", "Name", "Peer Addrs", "Client Addrs", "Is Learner"}, rows
	}
	v := t.kvView()
	return result{
		json: r, hexJSON: hexMembers{r.GetHeader(), nil, r.GetMembers()}, proto: r, table: table,
		simple: func(w io.Writer) {
			_, rows := table()
			for _, row := range rows {
				fmt.Fprintln(w, strings.Join(row, ", "))
			}
		},
		fields: func(w io.Writer) {
			v.header(w, r.GetHeader())
			for _, m := range r.GetMembers() {
				v.memberFields(w, m)
			}
		},
	}
}

func (v kvView) memberFields(w io.Writer, m *pb.Member) {
	fmt.Fprintln(w, `"ID" :`, v.member(m.GetID()))
	fmt.Fprintf(w, "\"Name\" : %q\n", m.GetName())
	for _, u := range m.GetPeerURLs() {
		fmt.Fprintf(w, "\"PeerURL\" : %q\n", u)
	}
	for _, u := range m.GetClientURLs() {
		fmt.Fprintf(w, "\"ClientURL\" : %q\n", u)
	}
	fmt.Fprintln(w, `"IsLearner" :`, m.GetIsLearner())
	fmt.Fprintln(w)
}
