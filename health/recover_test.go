package health_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/etcdkit/etcdkit/health"
	"github.com/etcdkit/etcdkit/internal/embedded"
)

const smallQuota = 16 << 20

// full starts three members with a small quota and fills them to the brim,
// mostly with history.
func full(t *testing.T) (*embedded.Cluster, *clientv3.Client) {
	t.Helper()
	cluster := start(t, 3, func(_ int, cfg *embed.Config) { cfg.QuotaBackendBytes = smallQuota })
	client := connect(t, cluster.Endpoints()...)
	fillUp(t, client, func(i int) string { return fmt.Sprintf("/registry/pods/%d", i%10) })
	return cluster, client
}

// fillUp writes until the quota is used up. Other errors, as of an election on a
// loaded machine, are no reason to stop.
func fillUp(t *testing.T, client *clientv3.Client, key func(i int) string) {
	t.Helper()
	const size, writes = 300_000, 10 * smallQuota / 300_000 // far more than it takes
	value := strings.Repeat("x", size)
	var err error
	for i := range writes {
		if _, err = client.Put(t.Context(), key(i), value); errors.Is(err, rpctypes.ErrNoSpace) {
			return
		}
	}
	t.Fatalf("the quota was never used up; the last write: %v", err)
}

func recoverTools(t *testing.T, cluster *embedded.Cluster) health.Tools {
	tools := toolsFor(t, cluster)
	tools.LocalLock = func() (health.Lock, error) { return noLock{}, nil }
	return tools
}

// noLock stands for a lock that nobody else wants.
type noLock struct{}

func (noLock) Lost() <-chan struct{}         { return nil }
func (noLock) Release(context.Context) error { return nil }

// The whole way out of NOSPACE (etcd-io/etcd#9992, #16779): compaction and
// disarming alone do not do, the space must be given back first.
func TestRecoverFromAQuotaUsedUp(t *testing.T) {
	t.Parallel()
	cluster, client := full(t)
	tools := recoverTools(t, cluster)

	dry, err := health.Recover(t.Context(), tools, cluster.Endpoints(), health.RecoverOptions{DryRun: true})
	if err != nil || len(dry.Steps) != 0 || len(dry.Plan) < 6 {
		t.Fatalf("dry run: %v, steps %s, plan %+v", err, done(&dry.Outcome), dry.Plan)
	}
	dry, err = health.Recover(t.Context(), tools, cluster.Endpoints(), health.RecoverOptions{DryRun: true, Keep: 1 << 40})
	if err != nil || !strings.HasPrefix(dry.Plan[0].Detail, "nothing: the newest revision is ") {
		t.Errorf("more revisions to keep than there are: %v, plan %+v, want no compaction", err, dry.Plan)
	}

	got, err := health.Recover(t.Context(), tools, cluster.Endpoints(), health.RecoverOptions{Keep: 5, Survey: true})
	if err != nil {
		t.Fatalf("%v; steps %+v", err, got.Steps)
	}
	if got.Lock != "local" {
		t.Errorf("lock %q, want local: etcd grants no lease here", got.Lock)
	}
	if c := got.Content; c == nil || len(c.Prefixes) != 1 || c.Prefixes[0].Prefix != "/registry/pods/" || c.Keys != 10 || c.RestBytes < c.LiveBytes {
		t.Errorf("content %+v, want ten pods and more history than live data", c)
	}
	alarms, err := client.AlarmList(t.Context())
	if err != nil || len(alarms.Alarms) != 0 {
		t.Errorf("alarms %v, %v; want none", alarms, err)
	}
	put(t, client, "a", "1")
	probes, err := client.Get(t.Context(), health.ProbePrefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || probes.Count != 0 {
		t.Errorf("%d probe keys left, %v", probes.Count, err)
	}

	again, err := health.Recover(t.Context(), tools, cluster.Endpoints(), health.RecoverOptions{Keep: 5})
	if err != nil || len(again.Steps) != 0 {
		t.Errorf("run again: %v, steps %s; want nothing to do", err, done(&again.Outcome))
	}
}

// A run that is stopped after any of its steps can be run again.
func TestRecoverGoesOnAfterAnInterruption(t *testing.T) {
	t.Parallel()
	cluster, client := full(t)
	stopped := errors.New("hung up")
	for runs := 1; ; runs++ {
		ctx, cancel := context.WithCancelCause(t.Context())
		tools := recoverTools(t, cluster)
		steps := 0
		tools.Done = func(health.Step) {
			if steps++; steps == runs {
				cancel(stopped)
			}
		}
		got, err := health.Recover(ctx, tools, cluster.Endpoints(), health.RecoverOptions{Keep: 5})
		cancel(nil)
		if err == nil {
			break
		}
		if !errors.Is(err, stopped) || runs > 10 {
			t.Fatalf("run %d: %v; steps %+v", runs, err, got.Steps)
		}
	}
	put(t, client, "a", "1")
}

func TestRecoverSaysWhenLiveDataFillTheQuota(t *testing.T) {
	t.Parallel()
	cluster := start(t, 1, func(_ int, cfg *embed.Config) { cfg.QuotaBackendBytes = smallQuota })
	client := connect(t, cluster.Endpoints()...)
	fillUp(t, client, func(i int) string { return fmt.Sprint("live/", i) })
	got, err := health.Recover(t.Context(), recoverTools(t, cluster), cluster.Endpoints(), health.RecoverOptions{DisarmBelow: 0.5})
	if !errors.Is(err, health.ErrNoRoom) {
		t.Fatalf("%v, want ErrNoRoom; steps %+v", err, got.Steps)
	}
	if alarms, err := client.AlarmList(t.Context()); err != nil || len(alarms.Alarms) != 1 {
		t.Errorf("alarms %v, %v; want NOSPACE still armed", alarms, err)
	}
}

func TestRecoverNeverDisarmsCorrupt(t *testing.T) {
	t.Parallel()
	cluster := start(t, 1, nil)
	client := connect(t, cluster.Endpoints()...)
	tools := recoverTools(t, cluster)
	tools.Dial = func(ctx context.Context, endpoint string) (health.Client, error) {
		c, err := open(ctx, endpoint)
		return corrupt{c, cluster.Members[0].ID()}, err
	}
	got, err := health.Recover(t.Context(), tools, cluster.Endpoints(), health.RecoverOptions{})
	if !errors.Is(err, health.ErrCorrupt) || !errors.Is(err, health.ErrRefused) || len(got.Steps) != 0 {
		t.Errorf("%v, steps %s; want a refusal and no step", err, done(&got.Outcome))
	}
	put(t, client, "a", "1")
}

// corrupt is a member that knows of two alarms.
type corrupt struct {
	*clientv3.Client
	id uint64
}

func (c corrupt) Status(ctx context.Context, endpoint string) (*clientv3.StatusResponse, error) {
	resp, err := c.Client.Status(ctx, endpoint)
	if err == nil {
		for _, kind := range []pb.AlarmType{pb.AlarmType_NOSPACE, pb.AlarmType_CORRUPT} {
			resp.Errors = append(resp.Errors, (&pb.AlarmMember{MemberID: c.id, Alarm: kind}).String())
		}
	}
	return resp, err
}
