package health_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/etcdkit/etcdkit/health"
	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/etcd"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

// start runs a cluster for the length of the test.
func start(t *testing.T, members int, configure func(int, *embed.Config)) *embedded.Cluster {
	t.Helper()
	return etcdtest.Start(t, embedded.Options{Members: members, Configure: configure})
}

// connect opens a client for the length of the test.
func connect(t *testing.T, endpoints ...string) *clientv3.Client {
	t.Helper()
	client, err := open(t.Context(), endpoints...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func open(ctx context.Context, endpoints ...string) (*clientv3.Client, error) {
	return etcd.Dial(ctx, etcd.Config{Endpoints: endpoints, DialTimeout: time.Minute, FailFast: true})
}

func doors() health.Doors {
	return health.Doors{
		Dial:   func(ctx context.Context, endpoint string) (health.Client, error) { return open(ctx, endpoint) },
		Scrape: health.Scraper(http.DefaultClient, nil),
	}
}

// put writes a key, again where a change of leader lost it.
func put(t *testing.T, c *clientv3.Client, key, value string) {
	t.Helper()
	poll(t, "a write", func() (bool, any) {
		_, err := c.Put(t.Context(), key, value)
		return err == nil, err
	})
}

// healthy checks until the cluster is found healthy, for a loaded machine may
// have an election meanwhile, and returns the report.
func healthy(t *testing.T, d health.Doors, endpoints []string, opts health.Options) health.Report {
	t.Helper()
	var got health.Report
	poll(t, "a healthy cluster", func() (bool, any) {
		var err error
		got, err = health.Check(t.Context(), d, endpoints, opts)
		return err == nil && got.Verdict == health.Healthy, fmt.Sprintf("%s, %v: %+v %+v", got.Verdict, err, got.Problems, got.Gaps)
	})
	return got
}

func TestCheckSeesEveryMemberFromOneEndpoint(t *testing.T) {
	t.Parallel()
	cluster := start(t, 3, nil)
	put(t, connect(t, cluster.Endpoints()...), "a", "1")
	got := healthy(t, doors(), cluster.Endpoints()[1:2], health.Options{Hash: true, Limits: lenient()})
	var names []string
	for _, m := range got.Members {
		names = append(names, m.Name)
		if m.Status == nil || m.Reads == nil || m.Reads.Count != 5 {
			t.Errorf("member %s: evidence is missing: %+v", m.Name, m)
		}
	}
	slices.Sort(names)
	if want := []string{"m1", "m2", "m3"}; !slices.Equal(names, want) {
		t.Errorf("members %v, want %v", names, want)
	}
	c := got.Cluster
	if c.Hash == nil || c.Hash.Result != health.HashesEqual || c.Leader == "" || c.Quorum != 2 || c.CanLose != 1 {
		t.Errorf("cluster %+v, hash %+v; want equal hashes, a leader, quorum 2, one that may fail", c, c.Hash)
	}
}

func TestCheckAsMembersDie(t *testing.T) {
	t.Parallel()
	cluster := start(t, 3, nil)
	opts := health.Options{Timeout: 2 * time.Second, Reads: 1}
	cluster.Members[0].Stop()
	poll(t, "degraded with one member dead", func() (bool, any) {
		got, err := health.Check(t.Context(), doors(), cluster.Endpoints(), opts)
		return err == nil && got.Verdict == health.Degraded && got.Cluster.CanLose == 0, got.Problems
	})
	cluster.Members[1].Stop()
	poll(t, "unhealthy without quorum", func() (bool, any) {
		got, err := health.Check(t.Context(), doors(), cluster.Endpoints(), opts)
		return errors.Is(err, health.ErrUnhealthy), got.Problems
	})
	cluster.Members[2].Stop()
	got, err := health.Check(t.Context(), doors(), cluster.Endpoints(), opts)
	if !errors.Is(err, health.ErrUnknown) || got.Verdict != health.Unknown {
		t.Errorf("all dead: %s, %v; want unknown; %+v", got.Verdict, err, got.Problems)
	}
}

// poll waits until what is true, and shows the last that was seen if it never is.
func poll(t *testing.T, what string, check func() (bool, any)) {
	t.Helper()
	deadline := time.Now().Add(45 * time.Second)
	for {
		ok, seen := check()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("never seen: %s; last: %+v", what, seen)
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
