package health_test

import (
	"context"
	"errors"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/etcdkit/etcdkit/health"
	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

// join starts a member as a start command says, for the length of the test.
func join(t *testing.T, name, peerURL, command string) {
	t.Helper()
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir = name, filepath.Join(t.TempDir(), name)
	cfg.ClusterState = embed.ClusterStateFlagExisting
	for _, line := range strings.Split(command, "\\\n") {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "--initial-cluster "); ok {
			cfg.InitialCluster = strings.TrimSpace(rest)
		}
	}
	peer, _ := url.Parse(peerURL)
	client, _ := url.Parse("http://" + etcdtest.ReservePort(t))
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	cfg.UnsafeNoFsync, cfg.ZapLoggerBuilder = true, embed.NewZapLoggerBuilder(zap.NewNop())
	server, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Errorf("start %s: %v", name, err)
		return
	}
	t.Cleanup(server.Close)
}

// voters are the names of the cluster's voters, sorted.
func voters(t *testing.T, client *clientv3.Client) string {
	t.Helper()
	list, err := client.MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range list.Members {
		if !m.IsLearner {
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

func TestReplace(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(*embedded.Cluster) // before
		newName string
		sameURL bool
		want    string // steps; a leader hands on first, which is left out here
		voters  string
	}{
		"a dead member goes first, so that three never need three": {
			prepare: func(c *embedded.Cluster) { c.Members[0].Stop() },
			newName: "m4", want: "remove m1, add m4, promote m4", voters: "m2,m3,m4",
		},
		"a living member stays until the new one has a vote": {
			newName: "m4", want: "add m4, promote m4, remove m1", voters: "m2,m3,m4",
		},
		"a member that comes back empty at its own address and name": {
			prepare: func(c *embedded.Cluster) { c.Members[0].Stop() },
			newName: "m1", sameURL: true, want: "remove m1, add m1, promote m1", voters: "m1,m2,m3",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := start(t, 3, nil)
			if tc.prepare != nil {
				tc.prepare(cluster)
				leader(t, cluster)
			}
			peer := cluster.Members[0].PeerURL()
			if !tc.sameURL {
				peer = "http://" + etcdtest.ReservePort(t)
			}
			out, err := health.Replace(t.Context(), toolsFor(t, cluster), cluster.Endpoints(), health.ReplaceOptions{
				Old: "m1", Name: tc.newName, PeerURLs: []string{peer}, Deadline: time.Minute,
				Added: func(command string) { join(t, tc.newName, peer, command) },
			})
			got := strings.ReplaceAll(done(out), "move-leader m1, ", "")
			if err != nil || got != tc.want {
				t.Errorf("%v, steps %s; want %s", err, got, tc.want)
			}
			client := connect(t, cluster.Endpoints()[1:]...)
			if got := voters(t, client); got != tc.voters {
				t.Errorf("voters %s, want %s", got, tc.voters)
			}
			left, err := client.Get(t.Context(), "etcdkit/", clientv3.WithPrefix(), clientv3.WithCountOnly())
			if err != nil || left.Count != 0 {
				t.Errorf("%d keys of ours left, %v", left.Count, err)
			}
		})
	}
}

// The terminal hangs up after each step in turn, and the command is run again.
func TestReplaceGoesOnAfterAnInterruption(t *testing.T) {
	t.Parallel()
	cluster := start(t, 3, nil)
	cluster.Members[0].Stop()
	leader(t, cluster)
	peer := "http://" + etcdtest.ReservePort(t)
	hangup := errors.New("hung up")
	started := false
	var all []string
	for runs := 0; ; runs++ {
		ctx, cancel := context.WithCancelCause(t.Context())
		tools := toolsFor(t, cluster)
		tools.Done = func(health.Step) { cancel(hangup) }
		out, err := health.Replace(ctx, tools, cluster.Endpoints(), health.ReplaceOptions{
			Old: "m1", Name: "m4", PeerURLs: []string{peer}, Deadline: time.Minute,
			Added: func(command string) {
				if !started {
					started = true
					join(t, "m4", peer, command)
				}
			},
		})
		cancel(nil)
		all = append(all, done(out))
		if err != nil {
			other := health.ReplaceOptions{Old: "m2", Name: "m4", PeerURLs: []string{peer}, DryRun: true}
			if _, err := health.Replace(t.Context(), toolsFor(t, cluster), cluster.Endpoints(), other); !errors.Is(err, health.ErrRefused) {
				t.Errorf("a new member that is on its way for another one: %v, want a refusal", err)
			}
		}
		if err == nil {
			break
		}
		if !errors.Is(err, hangup) || runs > 5 {
			t.Fatalf("run %d: %v; steps %+v", runs, err, out.Steps)
		}
	}
	if got, want := strings.Join(all, " | "), "remove m1 | add m4 | promote m4"; got != want {
		t.Errorf("steps %s, want %s", got, want)
	}
	if got := voters(t, connect(t, cluster.Endpoints()[1:]...)); got != "m2,m3,m4" {
		t.Errorf("voters %s", got)
	}
	// Whoever did not see the end may run it once more.
	out, err := health.Replace(t.Context(), toolsFor(t, cluster), cluster.Endpoints()[1:], health.ReplaceOptions{Old: "m1", Name: "m4", PeerURLs: []string{peer}})
	if err != nil || len(out.Plan) != 1 || out.Plan[0].Action != "skip" || len(out.Steps) != 0 {
		t.Errorf("when it is done: %v, plan %+v, steps %s; want nothing to do", err, out.Plan, done(out))
	}
}

func TestReplaceRefuses(t *testing.T) {
	t.Parallel()
	cluster := start(t, 3, nil)
	opts := health.ReplaceOptions{Old: "m9", Name: "m4", PeerURLs: []string{"http://127.0.0.1:1"}}
	if _, err := health.Replace(t.Context(), toolsFor(t, cluster), cluster.Endpoints(), opts); !errors.Is(err, health.ErrNoMember) {
		t.Errorf("an unknown member: %v, want ErrNoMember", err)
	}
	opts.Old, opts.PeerURLs = "m1", []string{cluster.Members[1].PeerURL()}
	out, err := health.Replace(t.Context(), toolsFor(t, cluster), cluster.Endpoints(), opts)
	if !errors.Is(err, health.ErrRefused) || !strings.Contains(err.Error(), "belongs to member m2") || len(out.Plan)+len(out.Steps) != 0 {
		t.Errorf("the peer URL of another member: %v, plan %v; want a refusal that names it", err, out.Plan)
	}
	cluster.Members[0].Stop()
	leader(t, cluster)
	opts.Old, opts.PeerURLs = "m2", []string{cluster.Members[1].PeerURL()}
	if out, err := health.Replace(t.Context(), toolsFor(t, cluster), cluster.Endpoints(), opts); !errors.Is(err, health.ErrRefused) || len(out.Steps) != 0 {
		t.Errorf("a living member of three with one dead: %v, steps %s; want a refusal", err, done(out))
	}
	cluster.Members[1].Stop()
	opts.Old = "m1"
	poll(t, "a refusal without quorum", func() (bool, any) {
		out, err := health.Replace(t.Context(), toolsFor(t, cluster), cluster.Endpoints(), opts)
		return errors.Is(err, health.ErrRefused) && len(out.Steps) == 0, err
	})
	// What the last one knows of alarms is no proof that there is none.
	if _, err := health.Recover(t.Context(), toolsFor(t, cluster), cluster.Endpoints(), health.RecoverOptions{}); !errors.Is(err, health.ErrRefused) {
		t.Errorf("recover without quorum: %v, want a refusal", err)
	}
}

// A learner that nobody starts is waited for until the deadline
// (etcd-io/etcd#15107).
func TestPromoteGivesUpAtItsDeadline(t *testing.T) {
	t.Parallel()
	cluster := start(t, 1, nil)
	client := connect(t, cluster.Endpoints()...)
	added, err := client.MemberAddAsLearner(t.Context(), []string{"http://" + etcdtest.ReservePort(t)})
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	err = health.Promote(t.Context(), toolsFor(t, cluster), cluster.Endpoints(), added.Member.ID,
		health.PromoteOptions{Deadline: time.Second, Progress: func(health.Promotion) { told++ }})
	if err == nil || !strings.Contains(err.Error(), "not been started") || told == 0 {
		t.Errorf("%v, progress told %d times; want an error that says what is missing", err, told)
	}
}

func TestPromoteWaitsThroughAnOutage(t *testing.T) {
	t.Parallel()
	cluster := start(t, 1, nil)
	client := connect(t, cluster.Endpoints()...)
	added, err := client.MemberAddAsLearner(t.Context(), []string{"http://" + etcdtest.ReservePort(t)})
	if err != nil {
		t.Fatal(err)
	}
	over := errors.New("it waited through the outage")
	ctx, cancel := context.WithCancelCause(t.Context())
	down := false
	err = health.Promote(ctx, toolsFor(t, cluster), cluster.Endpoints(), added.Member.ID,
		health.PromoteOptions{Deadline: time.Minute, Progress: func(health.Promotion) {
			if down {
				cancel(over)
				return
			}
			down = true
			member := cluster.Members[0]
			member.Stop()
			time.AfterFunc(2*time.Second, func() {
				if err := member.Start(t.Context()); err != nil {
					cancel(err)
				}
			})
		}})
	if !errors.Is(err, over) {
		t.Errorf("got %v, want that the wait goes on when the cluster is back", err)
	}
}
