package health_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/health"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/output"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

// While CORRUPT is armed etcd writes nothing, neither a lock nor a note, and
// the member is replaced all the same, in several runs too.
func TestReplaceOfACorruptMember(t *testing.T) {
	t.Parallel()
	cluster := start(t, 3, nil)
	endpoints := cluster.Endpoints()
	client := connect(t, endpoints[1:]...)
	id := cluster.Members[0].ID()
	arm := &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, MemberID: id, Alarm: pb.AlarmType_CORRUPT}
	if _, err := pb.NewMaintenanceClient(client.ActiveConnection()).Alarm(t.Context(), arm); err != nil {
		t.Fatal(err)
	}
	cluster.Members[0].Stop()
	leader(t, cluster)
	if _, err := health.Defrag(t.Context(), recoverTools(t, cluster), endpoints, health.DefragOptions{All: true}); !errors.Is(err, health.ErrUnhealthy) {
		t.Errorf("defragment: %v; want ErrUnhealthy at once", err)
	}

	peer := cluster.Members[0].PeerURL()
	opts := health.ReplaceOptions{Old: output.ID(id), Name: "m1", PeerURLs: []string{peer}, Deadline: time.Minute}
	for _, want := range []string{"remove m1", "add m1"} {
		ctx, cancel := context.WithCancel(t.Context())
		tools := recoverTools(t, cluster)
		tools.Done = func(health.Step) { cancel() }
		out, err := health.Replace(ctx, tools, endpoints, opts)
		cancel()
		if !errors.Is(err, context.Canceled) || done(out) != want || out.Lock != "local" || !strings.Contains(hint.Of(err), opts.Old) {
			t.Fatalf("%v, hint %q, lock %s, steps %s; want %s, and how to go on", err, hint.Of(err), out.Lock, done(out), want)
		}
	}
	opts.Added = func(command string) { join(t, "m1", peer, command) }
	if out, err := health.Replace(t.Context(), recoverTools(t, cluster), endpoints, opts); err != nil || done(out) != "promote m1" {
		t.Fatalf("%v, steps %s; want promote m1", err, done(out))
	}
	if got := voters(t, client); got != "m1,m2,m3" {
		t.Errorf("voters %s", got)
	}

	// The alarm outlives its member, and is cleared only by who has compared.
	report, err := health.Check(t.Context(), doors(), endpoints[1:], health.Options{})
	if !errors.Is(err, health.ErrUnhealthy) || report.Problems[0].Next != "etcdkit check consistency && etcdkit alarm disarm" {
		t.Errorf("health: %v, %+v; want the way to clear the alarm", err, report.Problems)
	}
	if _, err := health.Recover(t.Context(), recoverTools(t, cluster), endpoints[1:], health.RecoverOptions{}); !errors.Is(err, health.ErrCorrupt) {
		t.Errorf("recover: %v; want ErrCorrupt", err)
	}
}

// A learner answers for itself alone: it is nobody that was not compared.
func TestConsistencyDoesNotMissALearner(t *testing.T) {
	t.Parallel()
	cluster := start(t, 3, nil)
	client := connect(t, cluster.Endpoints()...)
	peer := "http://" + etcdtest.ReservePort(t)
	var added *clientv3.MemberAddResponse
	err := health.Patiently(t.Context(), func(ctx context.Context) (err error) {
		added, err = client.MemberAddAsLearner(ctx, []string{peer})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := health.CheckConsistency(t.Context(), doors(), cluster.Endpoints(), health.ConsistencyOptions{})
	if err != nil || got.Result != health.HashesEqual {
		t.Errorf("before its start: %s, %v, gaps %v; want equal", got.Result, err, got.Gaps)
	}
	list, err := client.MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	initial := "l=" + peer
	for _, m := range list.Members {
		if m.ID != added.Member.ID {
			initial += "," + m.Name + "=" + m.PeerURLs[0]
		}
	}
	join(t, "l", peer, "--initial-cluster "+initial)
	poll(t, "a learner that answers", func() (bool, any) {
		report, err := health.Check(t.Context(), doors(), cluster.Endpoints(), health.Options{Require: []health.Kind{health.KindMembers}})
		return err == nil && report.Cluster.Learners == 1 && len(report.Members) == 4, report.Gaps
	})
	got, err = health.CheckConsistency(t.Context(), doors(), cluster.Endpoints(), health.ConsistencyOptions{})
	if err != nil || got.Result != health.HashesEqual {
		t.Errorf("beside it: %s, %v, gaps %v; want equal", got.Result, err, got.Gaps)
	}
}
