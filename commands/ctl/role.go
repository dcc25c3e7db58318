package ctl

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	"github.com/etcdkit/etcdkit/internal/output"
)

// rootRole is the name of the role, and of the user, that may do everything.
const rootRole = "root"

func newRoleCmd(t *tree) *cobra.Command {
	return t.group("role <subcommand>", "Role related commands. Use `etcdctl role --help` to see subcommands", "Role related commands", groupAuth,
		newRoleAddCmd(t), newRoleDeleteCmd(t), newRoleGetCmd(t), newRoleListCmd(t), newRoleGrantCmd(t), newRoleRevokeCmd(t))
}

// headed is the response of a request that returns nothing but its header.
type headed interface {
	proto.Message
	GetHeader() *pb.ResponseHeader
}

// doneResult is the answer to a change of users or roles.
func (t *tree) doneResult(r headed, words string) result {
	return result{
		json: r, proto: r, simple: lines(words),
		fields: func(w io.Writer) { t.kvView().header(w, r.GetHeader()) },
	}
}

// roleCommand is the shape that most commands about roles have.
func (t *tree) roleCommand(use, short, help string, do func(ctx context.Context, c *clientv3.Client, name string) (result, error)) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Long: t.long("", help)}
	cmd.RunE = t.run(func(ctx context.Context, args []string) error {
		if len(args) != 1 {
			return badArgs("role %s command requires role name as its argument", cmd.Name())
		}
		return t.unbounded(ctx, func(ctx context.Context, client *clientv3.Client) error {
			r, err := do(ctx, client, args[0])
			if err != nil {
				return err
			}
			return t.print(r)
		})
	})
	return t.offer(cmd, output.Fields, output.Protobuf)
}

func newRoleAddCmd(t *tree) *cobra.Command {
	return t.roleCommand("add <role name>", "Adds a new role", `Makes a role without permissions; "role grant-permission" gives it some.

  etcdkit role add reader

Exit codes: 0 added, 1 failed, 2 wrong usage.`, func(ctx context.Context, c *clientv3.Client, name string) (result, error) {
		r, err := c.RoleAdd(ctx, name)
		return t.doneResult((*pb.AuthRoleAddResponse)(r), fmt.Sprintf("Role %s created", name)), err
	})
}

func newRoleDeleteCmd(t *tree) *cobra.Command {
	return t.roleCommand("delete <role name>", "Deletes a role", `Deletes a role and takes it from all users.

  etcdkit role delete reader

Exit codes: 0 deleted, 1 failed, 2 wrong usage.`, func(ctx context.Context, c *clientv3.Client, name string) (result, error) {
		r, err := c.RoleDelete(ctx, name)
		return t.doneResult((*pb.AuthRoleDeleteResponse)(r), fmt.Sprintf("Role %s deleted", name)), err
	})
}

func newRoleGetCmd(t *tree) *cobra.Command {
	return t.roleCommand("get <role name>", "Gets detailed information of a role", `Shows what a role may read and write. The role root may do everything, whatever
permissions it was granted.

  etcdkit role get reader

Exit codes: 0 shown, 1 failed, 2 wrong usage.`, func(ctx context.Context, c *clientv3.Client, name string) (result, error) {
		r, err := c.RoleGet(ctx, name)
		return t.roleGetResult(name, (*pb.AuthRoleGetResponse)(r)), err
	})
}

func newRoleListCmd(t *tree) *cobra.Command {
	return t.offer(&cobra.Command{
		Use: "list", Short: "Lists all roles",
		Long: t.long("", `Lists the names of all roles.

  etcdkit role list

Exit codes: 0 listed, 1 failed, 2 wrong usage.`),
		RunE: t.run(func(ctx context.Context, args []string) error {
			if len(args) != 0 {
				return badArgs("role list command requires no arguments")
			}
			return t.unbounded(ctx, func(ctx context.Context, client *clientv3.Client) error {
				resp, err := client.RoleList(ctx)
				if err != nil {
					return err
				}
				r := (*pb.AuthRoleListResponse)(resp)
				return t.print(result{
					json: r, proto: r, simple: lines(t.names(r.GetRoles())...),
					fields: func(w io.Writer) {
						t.kvView().header(w, r.GetHeader())
						fmt.Fprint(w, `"Roles" :`)
						for _, role := range r.GetRoles() {
							fmt.Fprintf(w, " %q", role)
						}
						fmt.Fprintln(w)
					},
				})
			})
		}),
	}, output.Fields, output.Protobuf)
}

func (t *tree) roleGetResult(name string, r *pb.AuthRoleGetResponse) result {
	return result{
		json: r, proto: r,
		simple: func(w io.Writer) { t.roleSimple(w, name, r) },
		fields: func(w io.Writer) {
			t.kvView().header(w, r.GetHeader())
			for _, p := range r.GetPerm() {
				fmt.Fprintln(w, `"PermType" : `, p.GetPermType().String())
				fmt.Fprintf(w, "\"Key\" : %q\n", p.GetKey())
				fmt.Fprintf(w, "\"RangeEnd\" : %q\n", p.GetRangeEnd())
			}
		},
	}
}

// roleSimple lists what a role may read, then what it may write.
func (t *tree) roleSimple(w io.Writer, name string, r *pb.AuthRoleGetResponse) {
	fmt.Fprintf(w, "Role %s\n", t.name(name))
	for _, access := range []struct {
		title string
		perm  authpb.Permission_Type
	}{{"KV Read:", clientv3.PermRead}, {"KV Write:", clientv3.PermWrite}} {
		fmt.Fprintln(w, access.title)
		if name == rootRole && r.GetPerm() == nil {
			fmt.Fprintln(w, "\t[, <open ended>")
			continue
		}
		for _, p := range r.GetPerm() {
			if p.GetPermType() == access.perm || p.GetPermType() == clientv3.PermReadWrite {
				t.permissionLine(w, p)
			}
		}
	}
}

func (t *tree) permissionLine(w io.Writer, p *authpb.Permission) {
	key, end := string(p.GetKey()), string(p.GetRangeEnd())
	switch {
	case end == "":
		fmt.Fprintf(w, "\t%s\n", t.name(key))
		return
	case end == "\x00":
		fmt.Fprintf(w, "\t[%s, <open ended>", t.name(key))
	default:
		fmt.Fprintf(w, "\t[%s, %s)", t.name(key), t.name(end))
	}
	if key != "" && clientv3.GetPrefixRangeEnd(key) == end {
		fmt.Fprintf(w, " (prefix %s)", t.name(key))
	}
	fmt.Fprintln(w)
}
