//go:build full

package snapshot_test

import (
	"context"
	"testing"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/store"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/snapshot"
)

// revision is what a member has by itself.
func revision(ctx context.Context, t *testing.T, m *embedded.Member) int64 {
	t.Helper()
	status, err := etcdtest.Client(t, m.Endpoint()).Status(ctx, m.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	return status.Header.Revision
}

// A follower behind a partition answers its clients, and serves an old snapshot
// as willingly as a new one.
func TestAPartitionedFollowerThatLagsIsNotTaken(t *testing.T) {
	c := etcdtest.Start(t, embedded.Options{Members: 3})
	write(t, c.Endpoints()[0], 5)
	lead, err := etcdtest.Client(t, c.Endpoints()[0]).Status(t.Context(), c.Endpoints()[0])
	if err != nil {
		t.Fatal(err)
	}
	var stale *embedded.Member
	var fresh []*embedded.Member
	for _, m := range c.Members {
		if m.ID() != lead.Leader && stale == nil {
			stale = m
			continue
		}
		fresh = append(fresh, m)
	}
	etcdtest.Until(t, "all members at one revision", func(ctx context.Context) bool {
		return revision(ctx, t, stale) == revision(ctx, t, fresh[0])
	})
	repo := store.NewFolder(t.TempDir())
	save := func(members ...*embedded.Member) *snapshot.Saved {
		t.Helper()
		var endpoints []string
		for _, m := range members {
			endpoints = append(endpoints, m.Endpoint())
		}
		saved, err := snapshot.Save(t.Context(), source(endpoints...), repo, snapshot.SaveOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return saved
	}
	c.Isolate(stale)
	old := revision(t.Context(), t, stale)
	write(t, fresh[0].Endpoint(), 20)

	good := save(stale, fresh[0], fresh[1]).Manifest
	if good.Endpoint == stale.Endpoint() || !good.Quorum || good.Revision < old+20 {
		t.Errorf("taken from %s at revision %d, quorum %t; the one that lags is %s at %d", good.Endpoint, good.Revision, good.Quorum, stale.Endpoint(), old)
	}
	alone := save(stale)
	if m := alone.Manifest; m.Quorum || m.Revision != old || len(alone.Warnings) == 0 || m.Lineage != good.Lineage {
		t.Errorf("from the one that lags alone: %+v, warnings %q; want it marked, and in the lineage", m, alone.Warnings)
	}

	c.Isolate(fresh[0]) // now nobody has a quorum
	lost := save(stale, fresh[0], fresh[1])
	if m := lost.Manifest; m.Endpoint == stale.Endpoint() || m.Quorum || m.Revision < old+20 || len(lost.Warnings) == 0 {
		t.Errorf("without quorum: taken from %s at revision %d, quorum %t, warnings %q; want the most advanced, marked", m.Endpoint, m.Revision, m.Quorum, lost.Warnings)
	}
	all, err := snapshot.List(t.Context(), repo, "")
	if err != nil {
		t.Fatal(err)
	}
	if latest, err := snapshot.Latest(all, false); err != nil || latest.Name != good.Name {
		t.Errorf("latest is %v, %v; want the one with quorum", latest, err)
	}
}
