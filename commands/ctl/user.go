package ctl

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/output"
)

func newUserCmd(t *tree) *cobra.Command {
	return t.group("user <subcommand>", "User related commands. Use `etcdctl user --help` to see subcommands", "User related commands", groupAuth,
		newUserAddCmd(t), newUserDeleteCmd(t), newUserGetCmd(t), newUserListCmd(t), newUserPasswdCmd(t), newUserGrantCmd(t), newUserRevokeCmd(t))
}

func newUserDeleteCmd(t *tree) *cobra.Command {
	return t.offer(&cobra.Command{
		Use: "delete <user name>", Short: "Deletes a user",
		Long: t.long("", `Deletes a user.

  etcdkit user delete alice

Exit codes: 0 deleted, 1 failed, 2 wrong usage.`),
		RunE: t.run(func(ctx context.Context, args []string) error {
			if len(args) != 1 {
				return badArgs("user delete command requires user name as its argument")
			}
			return t.unbounded(ctx, func(ctx context.Context, client *clientv3.Client) error {
				r, err := client.UserDelete(ctx, args[0])
				if err != nil {
					return err
				}
				return t.print(t.doneResult((*pb.AuthUserDeleteResponse)(r), fmt.Sprintf("User %s deleted", args[0])))
			})
		}),
	}, output.Fields, output.Protobuf)
}

func newUserListCmd(t *tree) *cobra.Command {
	return t.offer(&cobra.Command{
		Use: "list", Short: "Lists all users",
		Long: t.long("", `Lists the names of all users.

  etcdkit user list

Exit codes: 0 listed, 1 failed, 2 wrong usage.`),
		RunE: t.run(func(ctx context.Context, args []string) error {
			if len(args) != 0 {
				return badArgs("user list command requires no arguments")
			}
			return t.unbounded(ctx, func(ctx context.Context, client *clientv3.Client) error {
				resp, err := client.UserList(ctx)
				if err != nil {
					return err
				}
				r := (*pb.AuthUserListResponse)(resp)
				return t.print(result{json: r, proto: r, simple: lines(t.names(r.GetUsers())...)})
			})
		}),
	}, output.Protobuf)
}

func newUserGetCmd(t *tree) *cobra.Command {
	var detail bool
	cmd := &cobra.Command{
		Use: "get <user name> [options]", Short: "Gets detailed information of a user",
		Long: t.long("", `Shows the roles of a user, with --detail also what they permit.

  etcdkit user get alice --detail

Exit codes: 0 shown, 1 failed, 2 wrong usage.`),
		RunE: t.run(func(ctx context.Context, args []string) error { return runUserGet(ctx, t, args, detail) }),
	}
	cmd.Flags().BoolVar(&detail, "detail", false, "Show permissions of roles granted to the user")
	return t.offer(cmd, output.Protobuf)
}

func runUserGet(ctx context.Context, t *tree, args []string, detail bool) error {
	if len(args) != 1 {
		return badArgs("user get command requires user name as its argument")
	}
	return t.unbounded(ctx, func(ctx context.Context, client *clientv3.Client) error {
		resp, err := client.UserGet(ctx, args[0])
		if err != nil {
			return err
		}
		r := (*pb.AuthUserGetResponse)(resp)
		switch {
		case !detail:
			return t.print(result{json: r, proto: r, simple: lines("User: "+t.name(args[0]), strings.Join(append([]string{"Roles:"}, t.names(r.GetRoles())...), " "))})
		case t.upstream():
			return t.upstreamUserDetail(ctx, client, args[0], r)
		}
		return t.userDetail(ctx, client, args[0], r)
	})
}

// upstreamUserDetail mixes words into any format.
func (t *tree) upstreamUserDetail(ctx context.Context, client *clientv3.Client, name string, r *pb.AuthUserGetResponse) error {
	fmt.Fprintf(t.Out, "User: %s\n", name)
	for _, role := range r.GetRoles() {
		fmt.Fprintln(t.Out)
		resp, err := client.RoleGet(ctx, role)
		if err != nil {
			return err
		}
		if err := t.print(t.roleGetResult(role, (*pb.AuthRoleGetResponse)(resp))); err != nil {
			return err
		}
	}
	return nil
}

// roleDetail is one role of a user with its permissions.
type roleDetail struct {
	Name        string `json:"name"`
	Permissions any    `json:"permissions"`
}

func (t *tree) userDetail(ctx context.Context, client *clientv3.Client, name string, r *pb.AuthUserGetResponse) error {
	roles := make([]*pb.AuthRoleGetResponse, len(r.GetRoles()))
	details := make([]roleDetail, len(roles))
	for i, role := range r.GetRoles() {
		resp, err := client.RoleGet(ctx, role)
		if err != nil {
			return fmt.Errorf("role %s: %w", role, err)
		}
		roles[i] = (*pb.AuthRoleGetResponse)(resp)
		details[i] = roleDetail{role, roles[i].GetPerm()}
	}
	return t.print(result{
		native: struct {
			User  string       `json:"user"`
			Roles []roleDetail `json:"roles"`
		}{name, details},
		proto: r,
		simple: func(w io.Writer) {
			fmt.Fprintf(w, "User: %s\n", t.name(name))
			for i, role := range r.GetRoles() {
				fmt.Fprintln(w)
				t.roleSimple(w, role, roles[i])
			}
		},
	})
}

func newUserGrantCmd(t *tree) *cobra.Command {
	return t.offer(&cobra.Command{
		Use: "grant-role <user name> <role name>", Short: "Grants a role to a user",
		Long: t.long("", `Gives a role to a user. The role root may do everything, whatever other roles the
user has.

  etcdkit user grant-role alice reader

Exit codes: 0 granted, 1 failed, 2 wrong usage.`),
		RunE: t.run(func(ctx context.Context, args []string) error {
			if len(args) != 2 {
				return badArgs("user grant command requires user name and role name as its argument")
			}
			return t.unbounded(ctx, func(ctx context.Context, client *clientv3.Client) error {
				r, err := client.UserGrantRole(ctx, args[0], args[1])
				if err != nil {
					return err
				}
				t.warnOfRoot(ctx, client, args[0], args[1])
				return t.print(t.doneResult((*pb.AuthUserGrantRoleResponse)(r), fmt.Sprintf("Role %s is granted to user %s", args[1], args[0])))
			})
		}),
	}, output.Fields, output.Protobuf)
}

// warnOfRoot tells natively that beside the role root no other role of a user
// matters. Whoever may grant a role may ask for the user's, so a failure is the
// next request's to tell.
func (t *tree) warnOfRoot(ctx context.Context, client *clientv3.Client, user, granted string) {
	if t.upstream() {
		return
	}
	if granted == rootRole {
		t.Warn("with the role root, user %s may read and write everything; narrower roles of theirs stop to matter", user)
		return
	}
	if r, err := client.UserGet(ctx, user); err == nil && slices.Contains(r.Roles, rootRole) {
		t.Warn("user %s has the role root and may read and write everything, so the role %s changes nothing", user, granted)
	}
}

func newUserRevokeCmd(t *tree) *cobra.Command {
	return t.offer(&cobra.Command{
		Use: "revoke-role <user name> <role name>", Short: "Revokes a role from a user",
		Long: t.long("", `Takes a role from a user.

  etcdkit user revoke-role alice reader

Exit codes: 0 revoked, 1 failed, 2 wrong usage.`),
		RunE: t.run(func(ctx context.Context, args []string) error {
			if len(args) != 2 {
				return badArgs("user revoke-role requires user name and role name as its argument")
			}
			return t.unbounded(ctx, func(ctx context.Context, client *clientv3.Client) error {
				r, err := client.UserRevokeRole(ctx, args[0], args[1])
				if err != nil {
					return err
				}
				return t.print(t.doneResult((*pb.AuthUserRevokeRoleResponse)(r), fmt.Sprintf("Role %s is revoked from user %s", args[1], args[0])))
			})
		}),
	}, output.Fields, output.Protobuf)
}
