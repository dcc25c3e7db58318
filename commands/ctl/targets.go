package ctl

import (
	"context"
	"errors"
	"fmt"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/etcd"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/output"
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

// looking is visiting for commands that change nothing: each endpoint is visited
// alone, so two clusters beside each other can be looked at, with a warning.
func (t *tree) looking(ctx context.Context, args []string, cluster *bool) (etcd.Config, []string, error) {
	c, targets, err := t.visiting(ctx, args, cluster)
	if err != nil || *cluster {
		return c, targets, err
	}
	if err := t.OneCluster(ctx, c); err != nil {
		t.Warn("%s", err)
	}
	return c, targets, nil
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
	members, err := t.ListMembers(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("list members: %w", err)
	}
	return t.memberTargets(t.Visits(ctx, c, members))
}

// memberTargets returns the endpoints of the members, each once, and notes who
// has to answer there.
func (t *tree) memberTargets(visits []app.Visit) ([]string, error) {
	if len(visits) == 0 {
		return nil, hint.With(errors.New("no member has a client URL"), "name the endpoints with --endpoints, without --cluster")
	}
	var eps []string
	t.visited = map[string]uint64{}
	for _, v := range visits {
		other, twice := t.visited[v.Endpoint]
		if twice {
			t.Warn("members %s and %s have the same client URL %s: only one of them can be visited there", output.ID(other), output.ID(v.ID), v.Endpoint)
			t.unvisited++
			continue
		}
		t.visited[v.Endpoint] = v.ID
		eps = append(eps, v.Endpoint)
	}
	return eps, nil
}

// rightMember returns an error if another member answered at the endpoint than
// the one that was meant.
func (t *tree) rightMember(endpoint string, header *pb.ResponseHeader) error {
	want, known := t.visited[endpoint]
	if got := header.GetMemberId(); known && got != 0 && got != want {
		return fmt.Errorf("member %s answered at %s, which is the URL of member %s", output.ID(got), endpoint, output.ID(want))
	}
	return nil
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
