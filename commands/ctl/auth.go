package ctl

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/output"
)

func newAuthCmd(t *tree) *cobra.Command {
	return t.group("auth <enable or disable>", "Enable or disable authentication. Use `etcdctl auth --help` to see subcommands", "Enable or disable authentication", groupAuth,
		newAuthEnableCmd(t), newAuthDisableCmd(t), newAuthStatusCmd(t))
}

func newAuthEnableCmd(t *tree) *cobra.Command {
	return t.offer(&cobra.Command{
		Use: "enable", Short: "Enables authentication",
		Long: t.long("", `Turns authentication on. The user root must exist ("user add root"); the role root
is made and given to it where it is missing. From then on every request needs a
user.

  etcdkit auth enable

Exit codes: 0 on, 1 failed, 2 wrong usage.`),
		RunE: t.run(func(ctx context.Context, args []string) error {
			return t.switchAuth(ctx, args, "enable", "Authentication Enabled", enableAuth)
		}),
	})
}

func newAuthDisableCmd(t *tree) *cobra.Command {
	return t.offer(&cobra.Command{
		Use: "disable", Short: "Disables authentication",
		Long: t.long("", `Turns authentication off: whoever reaches the cluster may do everything. Users and
roles stay.

  etcdkit auth disable --user root

Exit codes: 0 off, 1 failed, 2 wrong usage.`),
		RunE: t.run(func(ctx context.Context, args []string) error {
			return t.switchAuth(ctx, args, "disable", "Authentication Disabled", func(ctx context.Context, c *clientv3.Client) error {
				_, err := c.AuthDisable(ctx)
				return err
			})
		}),
	})
}

func (t *tree) switchAuth(ctx context.Context, args []string, name, done string, do func(context.Context, *clientv3.Client) error) error {
	if len(args) != 0 {
		return badArgs("auth %s command does not accept any arguments", name)
	}
	return t.request(ctx, func(ctx context.Context, client *clientv3.Client) error {
		if err := do(ctx, client); err != nil {
			return err
		}
		if t.upstream() {
			_, err := fmt.Fprintln(t.Out, done)
			return err
		}
		return t.print(result{
			native: struct {
				Enabled bool `json:"enabled"`
			}{name == "enable"},
			simple: lines(done),
		})
	})
}

// enableAuth makes the role root, and gives it to the user root, where only that
// is missing.
func enableAuth(ctx context.Context, c *clientv3.Client) error {
	_, err := c.AuthEnable(ctx)
	if !errors.Is(err, rpctypes.ErrRootRoleNotExist) {
		return err
	}
	if _, err := c.RoleAdd(ctx, rootRole); err != nil {
		return err
	}
	if _, err := c.UserGrantRole(ctx, rootRole, rootRole); err != nil {
		return err
	}
	_, err = c.AuthEnable(ctx)
	return err
}

func newAuthStatusCmd(t *tree) *cobra.Command {
	return t.offer(&cobra.Command{
		Use: "status", Short: "Returns authentication status",
		Long: t.long("", `Shows whether authentication is on, and the revision of users and roles.

  etcdkit auth status

Exit codes: 0 shown, 1 failed, 2 wrong usage.`),
		RunE: t.run(func(ctx context.Context, args []string) error {
			if len(args) != 0 {
				return badArgs("auth status command does not accept any arguments")
			}
			return t.request(ctx, func(ctx context.Context, client *clientv3.Client) error {
				resp, err := client.AuthStatus(ctx)
				if err != nil {
					return err
				}
				r := (*pb.AuthStatusResponse)(resp)
				return t.print(result{
					json: r, proto: r,
					simple: lines(fmt.Sprintln("Authentication Status:", r.GetEnabled()) + fmt.Sprint("AuthRevision: ", r.GetAuthRevision())),
				})
			})
		}),
	}, output.Protobuf)
}
