package health_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/health"
	"github.com/etcdkit/etcdkit/internal/embedded"
)

// toolsFor are the tools of maintenance on a test's cluster.
func toolsFor(t *testing.T, cluster *embedded.Cluster) health.Tools {
	t.Helper()
	d := doors()
	d.Scrape = nil // embedded members share this process's metrics
	return health.Tools{
		Doors:   d,
		Operate: func(_ context.Context, endpoint string) (health.Operator, error) { return open(t.Context(), endpoint) },
		Lock: func(ctx context.Context, ttl time.Duration) (health.Lock, error) {
			return health.AcquireLock(ctx, connect(t, cluster.Endpoints()...), ttl)
		},
	}
}

// done are the steps that succeeded, and those that did not with a "!".
func done(o *health.Outcome) string {
	var steps []string
	for _, s := range o.Steps {
		steps = append(steps, strings.TrimSpace(map[bool]string{false: "!"}[s.OK]+s.Action+" "+s.Member))
	}
	return strings.Join(steps, ", ")
}

// fragment fills the cluster and deletes most of it again.
func fragment(t *testing.T, client *clientv3.Client) {
	t.Helper()
	value := strings.Repeat("x", 10_000)
	for i := range 200 {
		put(t, client, fmt.Sprintf("fill/%03d", i), value)
	}
	resp, err := client.Delete(t.Context(), "fill/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Compact(t.Context(), resp.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	for _, endpoint := range client.Endpoints() {
		poll(t, "free pages", func() (bool, any) {
			put(t, client, "nudge", "") // pages are counted with the next write
			status, err := client.Status(t.Context(), endpoint)
			return err == nil && status.DbSizeInUse < status.DbSize/2, status
		})
	}
}

// leader returns the index of the leading member.
func leader(t *testing.T, cluster *embedded.Cluster) (index int) {
	t.Helper()
	poll(t, "a leader", func() (bool, any) {
		for _, m := range cluster.Members {
			if m.ID() == 0 {
				continue
			}
			status, err := connect(t, m.Endpoint()).Status(t.Context(), m.Endpoint())
			if err != nil || status.Leader == 0 {
				return false, err
			}
			index = slices.IndexFunc(cluster.Members, func(o *embedded.Member) bool { return o.ID() == status.Leader })
			return index >= 0, status
		}
		return false, "no member runs"
	})
	return index
}

// The leader goes last, after a member that is done took leadership
// (etcd-io/etcd#15477, ahrtr/etcd-defrag#58), one at a time
// (ahrtr/etcd-defrag PR #119).
func TestDefragTakesFollowersFirstAndLeaderLast(t *testing.T) {
	t.Parallel()
	cluster := start(t, 3, nil)
	client := connect(t, cluster.Endpoints()...)
	fragment(t, client)
	leads := cluster.Members[leader(t, cluster)]
	out, err := health.Defrag(t.Context(), toolsFor(t, cluster), cluster.Endpoints(), health.DefragOptions{MinFree: 1 << 20})
	if err != nil {
		t.Fatalf("%v; steps %+v", err, out.Steps)
	}
	if len(out.Steps) != 4 || out.Steps[2].Action != "move-leader" || out.Steps[3].Member != leads.Name() || out.Lock != "etcd" {
		t.Errorf("steps %s with lock %s; want two followers, move-leader, defrag %s, lock etcd", done(out), out.Lock, leads.Name())
	}
	for _, m := range cluster.Members {
		status, err := client.Status(t.Context(), m.Endpoint())
		if err != nil || status.DbSize > 1<<20 {
			t.Errorf("%s: size %d, %v; want below 1 MiB", m.Name(), status.DbSize, err)
		}
	}
	locks, err := client.Get(t.Context(), health.LockKey, clientv3.WithPrefix())
	if err != nil || locks.Count != 0 {
		t.Errorf("%d lock keys left, %v; want none", locks.Count, err)
	}
}

func TestOnlyOneMaintenanceAtATime(t *testing.T) {
	t.Parallel()
	cluster := start(t, 1, nil)
	tools := toolsFor(t, cluster)
	held, err := tools.Lock(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	out, err := health.Defrag(t.Context(), tools, cluster.Endpoints(), health.DefragOptions{All: true})
	if !errors.Is(err, health.ErrLocked) || len(out.Steps) != 0 {
		t.Errorf("with the lock held: %v, steps %s; want ErrLocked and no step", err, done(out))
	}
	if err := held.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := health.Defrag(t.Context(), tools, cluster.Endpoints(), health.DefragOptions{All: true}); err != nil {
		t.Errorf("after the lock was given back: %v", err)
	}
}

// A compaction cannot be taken back, so that what speaks against the
// defragmentation is heard before it.
func TestCompactWaitsForTheLockAndTheRefusals(t *testing.T) {
	t.Parallel()
	cluster := start(t, 1, nil)
	client := connect(t, cluster.Endpoints()...)
	for range 10 {
		put(t, client, "a", "1")
	}
	tools := toolsFor(t, cluster)
	opts := health.DefragOptions{Compact: true, Keep: 1, Members: []string{"m9"}}
	if out, err := health.Defrag(t.Context(), tools, cluster.Endpoints(), opts); !errors.Is(err, health.ErrNoMember) || len(out.Steps) != 0 {
		t.Errorf("an unknown member: %v, steps %s; want ErrNoMember and no step", err, done(out))
	}
	held, err := tools.Lock(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	opts = health.DefragOptions{Compact: true, Keep: 1, All: true}
	if out, err := health.Defrag(t.Context(), tools, cluster.Endpoints(), opts); !errors.Is(err, health.ErrLocked) || len(out.Steps) != 0 {
		t.Errorf("with the lock held: %v, steps %s; want ErrLocked and no step", err, done(out))
	}
	if _, err := client.Get(t.Context(), "a", clientv3.WithRev(3)); err != nil {
		t.Errorf("history is gone: %v", err)
	}
	if err := held.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	out, err := health.Defrag(t.Context(), tools, cluster.Endpoints(), opts)
	if err != nil || done(out) != "compact, defrag m1" {
		t.Errorf("%v, steps %s; want compact, defrag m1", err, done(out))
	}
	left, err := client.Get(t.Context(), "etcdkit/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || left.Count != 0 {
		t.Errorf("%d keys of ours left, %v", left.Count, err)
	}
}

func TestASignalStopsBeforeTheNextMemberAndGivesTheLockBack(t *testing.T) {
	t.Parallel()
	cluster := start(t, 3, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	hangup := errors.New("hung up")
	tools := toolsFor(t, cluster)
	tools.Starting = func(string, string) { cancel(hangup) } // while the first step runs
	out, err := health.Defrag(ctx, tools, cluster.Endpoints(), health.DefragOptions{All: true})
	if !errors.Is(err, hangup) || len(out.Steps) != 1 || !out.Steps[0].OK || len(out.Leftover) != 2 {
		t.Errorf("%v, steps %s, left %v; want the first step finished, two members left", err, done(out), out.Leftover)
	}
	resp, err := connect(t, cluster.Endpoints()...).Get(t.Context(), health.LockKey, clientv3.WithPrefix())
	if err != nil || resp.Count != 0 {
		t.Errorf("%d lock keys left, %v; want none", resp.Count, err)
	}
}

// A member that dies before its turn stops the run: the others must not stand
// still as well.
func TestAMemberThatDiesBeforeItsTurnStopsTheRun(t *testing.T) {
	t.Parallel()
	cluster := start(t, 3, nil)
	tools := toolsFor(t, cluster)
	first := true
	tools.Done = func(s health.Step) {
		if first && s.Action == "defrag" {
			first = false
			for _, m := range cluster.Members {
				if m.Name() != s.Member {
					m.Stop()
					return
				}
			}
		}
	}
	out, err := health.Defrag(t.Context(), tools, cluster.Endpoints(),
		health.DefragOptions{All: true, GateTimeout: time.Second})
	if err == nil || len(out.Steps) != 1 || len(out.Leftover) != 2 {
		t.Errorf("%v, steps %s, left %v; want an error after one step", err, done(out), out.Leftover)
	}
}
