package ctl

import (
	"context"
	"errors"
	"fmt"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/etcd"
	"github.com/etcdkit/etcdkit/internal/hint"
)

// visiting is how the commands that visit endpoints begin: they take no
// arguments. It returns how to connect and where to. What cluster points to may
// be set by the environment, which is read here.
func (t *tree) visiting(ctx context.Context, args []string, cluster *bool) (etcd.Config, []string, error) {
	if err := t.tooMany(args, 0); err != nil {
		return etcd.Config{}, nil, err
	}
	c, err := t.connection()
	if err != nil {
		return c, nil, err
	}
	targets, err := t.targets(ctx, c, *cluster)
	return c, targets, err
}

// targets returns the endpoints that an endpoint command visits one by one:
// those given, or with cluster those of all members.
func (t *tree) targets(ctx context.Context, c etcd.Config, cluster bool) ([]string, error) {
	if t.upstream() {
		return t.upstreamTargets(ctx, cluster)
	}
	if !cluster {
		return unique(c.Endpoints), nil
	}
	members, err := t.members(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("list members: %w", err)
	}
	var eps []string
	for _, m := range members {
		if len(m.GetClientURLs()) == 0 {
			t.Warn("member %x has not started yet, so it has no endpoint to visit", m.GetID())
			continue
		}
		eps = append(eps, preferredURL(m, c.Endpoints))
	}
	if len(eps) == 0 {
		return nil, hint.With(errors.New("no member has a client URL"), "name the endpoints with --endpoints, without --cluster")
	}
	return eps, nil
}

// upstreamTargets visits every URL, and a member with two of them twice. SRV
// records count only for finding the member list.
func (t *tree) upstreamTargets(ctx context.Context, cluster bool) ([]string, error) {
	if !cluster {
		return t.Global.Conn.Endpoints, nil
	}
	c, err := t.Global.UpstreamConnection(t.cmd.Flags().Changed, t.Env)
	if err != nil {
		return nil, err
	}
	c.MaxRequestBytes, c.MaxRecvBytes = 0, 0
	c.Log = t.upstreamLog().Named("etcd-client")
	client, err := t.dial(ctx, c)
	if err != nil {
		return nil, &codeError{exitError, err}
	}
	defer client.Close()
	bounded, cancel := t.Timeout(ctx)
	defer cancel()
	resp, err := client.MemberList(bounded)
	if err != nil {
		return nil, fmt.Errorf("failed to fetch endpoints from etcd cluster member list: %w", err)
	}
	var eps []string
	for _, m := range resp.Members {
		eps = append(eps, m.GetClientURLs()...)
	}
	return eps, nil
}

// members returns the cluster's members, as the endpoints of c list them.
func (t *tree) members(ctx context.Context, c etcd.Config) ([]*pb.Member, error) {
	client, err := t.dial(ctx, c)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	bounded, cancel := t.Timeout(ctx)
	defer cancel()
	// Serializable, so that a cluster without quorum can be looked at too.
	resp, err := client.MemberList(bounded, clientv3.WithSerializable())
	if err != nil {
		return nil, err
	}
	return resp.Members, nil
}

// preferredURL is the URL by which a member is visited, once: one that the user
// gave, since that works from here, else the first that it advertises.
func preferredURL(m *pb.Member, given []string) string {
	for _, u := range m.GetClientURLs() {
		if slices.Contains(given, u) {
			return u
		}
	}
	return m.GetClientURLs()[0]
}

// unique drops repeated endpoints and keeps the order.
func unique(all []string) []string {
	var kept []string
	for _, s := range all {
		if !slices.Contains(kept, s) {
			kept = append(kept, s)
		}
	}
	return kept
}
