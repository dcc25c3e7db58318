package ctl

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/output"
)

// errNoLease is the native answer to a lease that the cluster does not know.
var errNoLease = errors.New("no such lease, or it has expired")

func newLeaseCmd(t *tree) *cobra.Command {
	return t.group("lease <subcommand>", "Lease related commands. Use `etcdctl lease --help` to see subcommands", "Lease related commands", groupKV,
		newLeaseGrantCmd(t), newLeaseRevokeCmd(t), newLeaseTimeToLiveCmd(t), newLeaseListCmd(t), newLeaseKeepAliveCmd(t))
}

// leaseCmd completes what the lease commands have in common.
func (t *tree) leaseCmd(cmd *cobra.Command, run func(context.Context, []string) error) *cobra.Command {
	cmd.RunE = t.run(run)
	if !t.upstream() {
		failed := "1 failed"
		if strings.Contains(cmd.Use, "<leaseID>") {
			failed += ", also when there is no such lease"
		}
		cmd.Long += "\n\nExit codes: 0 done; " + failed + "; 2 wrong usage."
	}
	return t.offer(cmd, output.Fields, output.Protobuf)
}

func newLeaseGrantCmd(t *tree) *cobra.Command {
	return t.leaseCmd(&cobra.Command{
		Use: "grant <ttl>", Short: "Creates leases",
		Long: t.long("", "Creates a lease that expires after <ttl> seconds unless it is kept alive. The server\nraises a time that is too short.\n\n  etcdkit lease grant 60"),
	}, func(ctx context.Context, args []string) error { return runLeaseGrant(ctx, t, args) })
}

func runLeaseGrant(ctx context.Context, t *tree, args []string) error {
	if len(args) != 1 {
		return badArgs("lease grant command needs TTL argument")
	}
	ttl, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil {
		return badArgs("bad TTL (%w)", err)
	}
	return t.request(ctx, func(ctx context.Context, client *clientv3.Client) error {
		resp, err := client.Grant(ctx, ttl)
		if err != nil {
			return fmt.Errorf("failed to grant lease (%w)", err)
		}
		return t.print(t.grantResult(resp))
	})
}

func newLeaseRevokeCmd(t *tree) *cobra.Command {
	return t.leaseCmd(&cobra.Command{
		Use: "revoke <leaseID>", Short: "Revokes leases",
		Long: t.long("", "Ends a lease at once and deletes the keys attached to it.\n\n  etcdkit lease revoke 32695410dcc0ca06"),
	}, func(ctx context.Context, args []string) error { return runLeaseRevoke(ctx, t, args) })
}

func runLeaseRevoke(ctx context.Context, t *tree, args []string) error {
	if len(args) != 1 {
		return badArgs("lease revoke command needs 1 argument")
	}
	id, err := leaseID(args[0])
	if err != nil {
		return err
	}
	return t.request(ctx, func(ctx context.Context, client *clientv3.Client) error {
		resp, err := client.Revoke(ctx, id)
		if err != nil {
			return fmt.Errorf("failed to revoke lease (%w)", err)
		}
		return t.print(t.revokeResult(id, resp))
	})
}

func newLeaseTimeToLiveCmd(t *tree) *cobra.Command {
	var keys bool
	cmd := t.leaseCmd(&cobra.Command{
		Use: "timetolive <leaseID> [options]", Short: "Get lease information",
		Long: t.long("", "Tells how long a lease still lives, and which keys are attached to it.\n\n  etcdkit lease timetolive 32695410dcc0ca06 --keys"),
	}, func(ctx context.Context, args []string) error { return runLeaseTimeToLive(ctx, t, args, keys) })
	cmd.Flags().BoolVar(&keys, "keys", false, "Get keys attached to this lease")
	return cmd
}

func runLeaseTimeToLive(ctx context.Context, t *tree, args []string, keys bool) error {
	if len(args) != 1 {
		return badArgs("lease timetolive command needs lease ID as argument")
	}
	client, err := t.client(ctx) // upstream looks at the id only now
	if err != nil {
		return err
	}
	defer client.Close()
	id, err := leaseID(args[0])
	if err != nil {
		return err
	}
	var opts []clientv3.LeaseOption
	if keys {
		opts = append(opts, clientv3.WithAttachedKeys())
	}
	ctx, cancel := t.nativeTimeout(ctx)
	defer cancel()
	resp, err := client.TimeToLive(ctx, id, opts...)
	if err != nil {
		return &codeError{exitBadConnection, err}
	}
	if resp.TTL == -1 && !t.upstream() {
		return noLease(id)
	}
	return t.print(t.timeToLiveResult(resp, keys))
}

func newLeaseListCmd(t *tree) *cobra.Command {
	return t.leaseCmd(&cobra.Command{
		Use: "list", Short: "List all active leases",
		Long: t.long("", "Lists the ids of all leases.\n\n  etcdkit lease list"),
	}, func(ctx context.Context, args []string) error { return runLeaseList(ctx, t, args) })
}

func runLeaseList(ctx context.Context, t *tree, args []string) error {
	if err := t.tooMany(args, 0); err != nil {
		return err
	}
	client, err := t.client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := t.nativeTimeout(ctx)
	defer cancel()
	resp, err := client.Leases(ctx)
	if err != nil {
		return &codeError{exitBadConnection, err}
	}
	return t.print(t.leasesResult(resp))
}

func newLeaseKeepAliveCmd(t *tree) *cobra.Command {
	var once bool
	cmd := t.leaseCmd(&cobra.Command{
		Use: "keep-alive [options] <leaseID>", Short: "Keeps leases alive (renew)",
		Long: t.long("", "Renews a lease, until a signal ends it, and shows each renewal.\n\n  etcdkit lease keep-alive 32695410dcc0ca06"),
	}, func(ctx context.Context, args []string) error { return runLeaseKeepAlive(ctx, t, args, once) })
	cmd.Flags().BoolVar(&once, "once", false, t.long(
		"Resets the keep-alive time to its original value and cobrautl.Exits immediately", "renew once and end"))
	return cmd
}

func runLeaseKeepAlive(ctx context.Context, t *tree, args []string, once bool) error {
	if len(args) != 1 {
		return badArgs("lease keep-alive command needs lease ID as argument")
	}
	id, err := leaseID(args[0])
	if err != nil {
		return err
	}
	client, err := t.client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	if once {
		return t.keepAliveOnce(ctx, client, id)
	}
	if err := t.checkLease(ctx, client, id); err != nil {
		return err
	}
	renewals, err := client.KeepAlive(ctx, id)
	if err != nil {
		return &codeError{exitBadConnection, err}
	}
	for resp := range renewals {
		if err := t.print(t.keepAliveResult(resp)); err != nil {
			return err
		}
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !t.upstream():
		return t.lostLease(ctx, client, id)
	case t.Format == output.Simple:
		_, err = fmt.Fprintf(t.Out, "lease %016x expired or revoked.\n", id)
	}
	return err
}

// checkLease fails where the lease cannot be renewed, natively. The client
// library would report every cause as the end of the lease, after a while.
func (t *tree) checkLease(ctx context.Context, client *clientv3.Client, id clientv3.LeaseID) error {
	if t.upstream() {
		return nil
	}
	_, err := t.leaseLife(ctx, client, id)
	return err
}

// leaseLife returns how long a lease still lives.
func (t *tree) leaseLife(ctx context.Context, client *clientv3.Client, id clientv3.LeaseID) (time.Duration, error) {
	ctx, cancel := t.Timeout(ctx)
	defer cancel()
	resp, err := client.TimeToLive(ctx, id)
	if err != nil {
		return 0, fmt.Errorf("lease %s: %w", output.ID(uint64(id)), err)
	}
	if resp.TTL == -1 {
		return 0, noLease(id)
	}
	return time.Duration(resp.TTL) * time.Second, nil
}

// lostLease says why renewing has ended.
func (t *tree) lostLease(ctx context.Context, client *clientv3.Client, id clientv3.LeaseID) error {
	left, err := t.leaseLife(ctx, client, id)
	switch {
	case errors.Is(err, errNoLease):
		return err
	case err != nil:
		return fmt.Errorf("keep-alive lost the cluster, and the lease may have expired: %w", err)
	}
	return hint.With(fmt.Errorf("lease %s: the cluster renewed it no more; it expires in %s", output.ID(uint64(id)), left),
		"see what is wrong with: etcdkit health; renew it again with: etcdkit lease keep-alive %s", output.ID(uint64(id)))
}

func noLease(id clientv3.LeaseID) error {
	return hint.With(fmt.Errorf("lease %s: %w", output.ID(uint64(id)), errNoLease), "see those there are with: etcdkit lease list")
}

func (t *tree) keepAliveOnce(ctx context.Context, client *clientv3.Client, id clientv3.LeaseID) error {
	ctx, cancel := t.nativeTimeout(ctx)
	defer cancel()
	resp, err := client.KeepAliveOnce(ctx, id)
	if errors.Is(err, rpctypes.ErrLeaseNotFound) && !t.upstream() {
		return noLease(id)
	}
	if err != nil {
		return &codeError{exitBadConnection, err}
	}
	return t.print(t.keepAliveResult(resp))
}

func leaseID(arg string) (clientv3.LeaseID, error) {
	id, err := strconv.ParseInt(arg, 16, 64)
	if err != nil {
		return 0, badArgs("bad lease ID arg (%w), expecting ID in Hex", err)
	}
	return clientv3.LeaseID(id), nil
}
