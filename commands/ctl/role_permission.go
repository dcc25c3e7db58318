package ctl

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/output"
)

// permissionRange is the range of keys of a permission.
type permissionRange struct{ prefix, fromKey bool }

func newRoleGrantCmd(t *tree) *cobra.Command {
	var keys permissionRange
	cmd := &cobra.Command{
		Use: "grant-permission [options] <role name> <permission type> <key> [endkey]", Short: "Grants a key to a role",
		Long: t.long("", `Lets a role read, write, or readwrite a key, the range from a key up to an end key,
all keys with a prefix, or all keys from one on. Permissions add up.

  etcdkit role grant-permission reader read /config/ --prefix

Exit codes: 0 granted, 1 failed, 2 wrong usage.`),
		RunE: t.run(func(ctx context.Context, args []string) error { return runRoleGrant(ctx, t, args, keys) }),
	}
	cmd.Flags().BoolVar(&keys.prefix, "prefix", false, "grant a prefix permission")
	cmd.Flags().BoolVar(&keys.fromKey, "from-key", false, "grant a permission of keys that are greater than or equal to the given key using byte compare")
	return t.offer(cmd, output.Fields, output.Protobuf)
}

func runRoleGrant(ctx context.Context, t *tree, args []string, keys permissionRange) error {
	if len(args) < 3 {
		return badArgs("role grant command requires role name, permission type, and key [endkey] as its argument")
	}
	perm, err := clientv3.StrToPermissionType(args[1])
	if err != nil {
		return badArgs("%w", err)
	}
	if err := t.tooMany(args, 4); err != nil {
		return err
	}
	key, end, err := keys.of(args[2:])
	if err != nil {
		return err
	}
	return t.unbounded(ctx, func(ctx context.Context, client *clientv3.Client) error {
		r, err := client.RoleGrantPermission(ctx, args[0], key, end, perm)
		if err != nil {
			return err
		}
		if args[0] == rootRole && !t.upstream() {
			t.Warn("the role root may read and write everything, so this permission changes nothing")
		}
		return t.print(t.doneResult((*pb.AuthRoleGrantPermissionResponse)(r), fmt.Sprintf("Role %s updated", args[0])))
	})
}

func newRoleRevokeCmd(t *tree) *cobra.Command {
	var keys permissionRange
	cmd := &cobra.Command{
		Use: "revoke-permission <role name> <key> [endkey]", Short: "Revokes a key from a role",
		Long: t.long("", `Takes a permission from a role. The range must be the one that was granted.

  etcdkit role revoke-permission reader /config/ --prefix

Exit codes: 0 revoked, 1 failed, 2 wrong usage.`),
		RunE: t.run(func(ctx context.Context, args []string) error { return runRoleRevoke(ctx, t, args, keys) }),
	}
	cmd.Flags().BoolVar(&keys.prefix, "prefix", false, "revoke a prefix permission")
	cmd.Flags().BoolVar(&keys.fromKey, "from-key", false, "revoke a permission of keys that are greater than or equal to the given key using byte compare")
	return t.offer(cmd, output.Fields, output.Protobuf)
}

func runRoleRevoke(ctx context.Context, t *tree, args []string, keys permissionRange) error {
	if len(args) < 2 {
		return badArgs("role revoke-permission command requires role name and key [endkey] as its argument")
	}
	if err := t.tooMany(args, 3); err != nil {
		return err
	}
	key, end, err := keys.of(args[1:])
	if err != nil {
		return err
	}
	return t.unbounded(ctx, func(ctx context.Context, client *clientv3.Client) error {
		r, err := client.RoleRevokePermission(ctx, args[0], key, end)
		if err != nil {
			return err
		}
		return t.print(t.doneResult((*pb.AuthRoleRevokePermissionResponse)(r), revokedText(args[0], args[1], end)))
	})
}

func revokedText(role, key, end string) string {
	switch end {
	case "":
		return fmt.Sprintf("Permission of key %s is revoked from role %s", key, role)
	case "\x00":
		return fmt.Sprintf("Permission of range [%s, <open ended> is revoked from role %s", key, role)
	}
	return fmt.Sprintf("Permission of range [%s, %s) is revoked from role %s", key, end, role)
}

// of returns the range of a permission for a key and perhaps an end key. An
// empty key stands for the lowest one; with either flag the range is then
// everything, which the server writes as open ended.
func (p permissionRange) of(args []string) (key, end string, err error) {
	key = args[0]
	both := errors.New("--from-key and --prefix flags are mutually exclusive")
	switch {
	case key == "" && p.prefix && p.fromKey:
		err = both
	case key == "" && (p.prefix || p.fromKey):
		return "\x00", "\x00", nil
	case key == "":
		return "\x00", "", nil
	case len(args) > 1 && p.prefix:
		err = errors.New("unexpected endkey argument with --prefix flag")
	case len(args) > 1 && p.fromKey:
		err = errors.New("unexpected endkey argument with --from-key flag")
	case len(args) > 1:
		return key, args[1], nil
	case p.prefix && p.fromKey:
		err = both
	case p.prefix:
		return key, clientv3.GetPrefixRangeEnd(key), nil
	case p.fromKey:
		return key, "\x00", nil
	default:
		return key, "", nil
	}
	return "", "", &codeError{exitBadArgs, err}
}
