package health_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/health"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/internal/testing/reference"
)

// serverTools are the tools of maintenance on upstream's servers, whose
// metrics are their own.
func serverTools(t *testing.T, endpoints []string) health.Tools {
	t.Helper()
	return health.Tools{
		Doors: health.Doors{
			Dial:   func(ctx context.Context, endpoint string) (health.Client, error) { return open(ctx, endpoint) },
			Scrape: health.Scraper(http.DefaultClient, nil),
		},
		Operate: func(_ context.Context, endpoint string) (health.Operator, error) { return open(t.Context(), endpoint) },
		Lock: func(ctx context.Context, ttl time.Duration) (health.Lock, error) {
			return health.AcquireLock(ctx, connect(t, endpoints...), ttl)
		},
		LocalLock: func() (health.Lock, error) { return noLock{}, nil },
	}
}

// lenient are limits that a loaded machine keeps.
func lenient() health.Limits {
	return health.Limits{Latency: time.Minute, Fsync: time.Minute, Commit: time.Minute}
}

// Every supported version is judged, filled up and recovered. etcd 3.5 tells
// its quota only in the metrics (etcd-io/etcd#17872).
func TestEveryVersionIsJudgedAndRecovered(t *testing.T) {
	for _, program := range []reference.Program{reference.Etcd35, reference.Etcd36, reference.Etcd37} {
		t.Run(string(program), func(t *testing.T) {
			t.Parallel()
			servers := etcdtest.StartServers(t, etcdtest.ServerOptions{
				Program: program, Members: 3, Flags: []string{fmt.Sprintf("--quota-backend-bytes=%d", smallQuota)},
			})
			endpoints := servers.Endpoints()
			tools := serverTools(t, endpoints)
			report := healthy(t, tools.Doors, endpoints[:1], health.Options{Hash: true, Sample: 50 * time.Millisecond, Limits: lenient()})
			if len(report.Members) != 3 {
				t.Fatalf("%d members, want three: %+v", len(report.Members), report.Members)
			}
			for _, m := range report.Members {
				if m.Status.QuotaBytes != smallQuota || !strings.HasSuffix(string(program), m.Status.Version) {
					t.Errorf("%s: quota %d, version %s; want %d, that of %s", m.Name, m.Status.QuotaBytes, m.Status.Version, smallQuota, program)
				}
			}

			client := connect(t, endpoints...)
			fillUp(t, client, func(int) string { return "/registry/pods/a" })
			poll(t, "unhealthy for the alarm", func() (bool, any) {
				report, err := health.Check(t.Context(), tools.Doors, endpoints, health.Options{Limits: lenient()})
				return errors.Is(err, health.ErrUnhealthy), report.Problems
			})
			got, err := health.Recover(t.Context(), tools, endpoints, health.RecoverOptions{Keep: 1, Survey: true})
			if err != nil || got.Lock != "local" {
				t.Fatalf("%v; lock %s, steps %+v", err, got.Lock, got.Steps)
			}
			put(t, client, "a", "1")

			out, err := health.Defrag(t.Context(), tools, endpoints, health.DefragOptions{All: true, Compact: true})
			if err != nil || out.Lock != "etcd" {
				t.Errorf("defrag: %v; lock %s, steps %+v", err, out.Lock, out.Steps)
			}
		})
	}
}

// A member that serves a snapshot is not defragmented meanwhile: it would
// stand still until whoever reads the snapshot is done.
func TestAMemberThatServesASnapshotIsWaitedFor(t *testing.T) {
	t.Parallel()
	servers := etcdtest.StartServers(t, etcdtest.ServerOptions{})
	endpoints := servers.Endpoints()
	client := connect(t, endpoints...)
	for i := range 40 {
		put(t, client, fmt.Sprint("k", i), strings.Repeat("x", 1<<20))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := client.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	tools := serverTools(t, endpoints)
	out, err := health.Defrag(t.Context(), tools, endpoints, health.DefragOptions{All: true, GateTimeout: time.Second})
	if !errors.Is(err, health.ErrRefused) || len(out.Steps) != 0 {
		t.Errorf("while the snapshot is read: %v, steps %s; want a refusal", err, done(out))
	}
	cancel()
	_ = stream.Close()
	if out, err = health.Defrag(t.Context(), tools, endpoints, health.DefragOptions{All: true}); err != nil {
		t.Errorf("afterwards: %v, steps %s", err, done(out))
	}
}
