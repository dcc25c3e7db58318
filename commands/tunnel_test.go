package commands_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

// advertising starts a cluster whose members advertise these client URLs, and
// returns where they listen instead.
func advertising(t *testing.T, urls ...string) []string {
	t.Helper()
	return etcdtest.StartServers(t, etcdtest.ServerOptions{Members: len(urls), Advertise: urls}).Endpoints()
}

// Behind a tunnel the members' own URLs do not answer, and the endpoint given
// does.
func TestClusterFallsBackToTheEndpointsGiven(t *testing.T) {
	t.Parallel()
	s := &session{t: t, endpoint: advertising(t, "http://127.0.0.1:1")[0]}
	for _, args := range [][]string{
		{"endpoint", "status"},
		{"endpoint", "health"},
		{"endpoint", "hashkv"},
		{"defrag"},
		{"snapshot", "save", filepath.Join(t.TempDir(), "backup.db")},
	} {
		got := s.run(append(args, "--cluster")...)
		if got.code != 0 || !strings.Contains(got.err, "which was given: its own URL http://127.0.0.1:1 does not answer") {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

// With --resolve a member's own URL leads to the end of a tunnel, in every
// command.
func TestResolveLeadsElsewhere(t *testing.T) {
	t.Parallel()
	listen := advertising(t, "http://etcd-1.invalid:2379", "http://etcd-2.invalid:2379", "http://etcd-3.invalid:2379")
	var resolve []string
	for i, u := range listen {
		resolve = append(resolve, fmt.Sprintf("etcd-%d.invalid:2379=%s", i+1, strings.TrimPrefix(u, "http://")))
	}
	s := &session{t: t, endpoint: "http://ETCD-1.invalid:2379", environ: []string{"ETCDKIT_RESOLVE=" + strings.Join(resolve, ",")}}
	for _, args := range [][]string{
		{"put", "a", "1"},
		{"get", "--prefix", ""},
		{"endpoint", "health", "--cluster"},
		{"endpoint", "hashkv", "--cluster"},
		{"health", "--max-latency", "1m", "--max-fsync", "1m", "--max-commit", "1m", "--sample", "1ms", "--hash", "--require", "metrics,hash,members"},
		{"check", "consistency"},
		{"snapshot", "save", "--cluster", filepath.Join(t.TempDir(), "backup.db")},
		{"defrag-all", "--dry-run"},
	} {
		if got := s.run(args...); got.code != 0 {
			t.Errorf("%q: %+v", args, got)
		}
	}
	for _, bad := range []string{"x", "a:1", "a:1=b", "=b:1", "a:1=:2", "a:1=b:1,a:1=c:1"} {
		if got := s.run("get", "a", "--resolve", bad); got.code != 2 || !strings.Contains(got.err, "resolve") {
			t.Errorf("--resolve %s: %+v", bad, got)
		}
	}
}

// Three members that advertise one URL cannot be compared by it: whoever
// answers there would be compared with itself.
func TestMembersWithOneURLAreNotComparedWithThemselves(t *testing.T) {
	t.Parallel()
	var listen string
	etcdtest.Start(t, embedded.Options{Members: 3, Configure: func(i int, cfg *embed.Config) {
		if i == 0 {
			listen = cfg.ListenClientUrls[0].String()
		}
		u, err := url.Parse(listen)
		if err != nil {
			t.Fatal(err)
		}
		cfg.AdvertiseClientUrls = []url.URL{*u}
	}})
	s := &session{t: t, endpoint: listen}
	got := s.run("endpoint", "hashkv", "--cluster")
	if got.code != 4 || strings.Contains(got.err, "3 members agree") || !strings.Contains(got.err, "have the same client URL") {
		t.Errorf("got %+v, want 4: they cannot be compared", got)
	}
}

// A member that is stopped, not dead, keeps what it is asked: each member has a
// deadline of its own.
func TestAStoppedMemberDoesNotUseUpTheDeadlineOfTheOthers(t *testing.T) {
	t.Parallel()
	servers := etcdtest.StartServers(t, etcdtest.ServerOptions{Members: 3})
	client := etcdtest.Client(t, servers.Endpoints()...)
	status, err := client.Status(t.Context(), servers.Endpoints()[1])
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var leader, stopped, target int
	for i, m := range servers.Members {
		for _, listed := range list.Members {
			if listed.Name == m.Name && listed.ID == status.Leader {
				leader = i
			}
		}
	}
	stopped, target = (leader+1)%3, (leader+2)%3
	servers.Members[stopped].Pause()
	s := &session{t: t, endpoint: strings.Join([]string{servers.Endpoints()[stopped], servers.Endpoints()[leader], servers.Endpoints()[target]}, ",")}
	got := s.run("move-leader", servers.Members[target].Name, "--command-timeout", "2s")
	if got.code != 0 || !strings.HasPrefix(got.out, "Leadership transferred from ") {
		t.Errorf("got %+v, want that leadership moved", got)
	}
	id := fmt.Sprintf("%x", list.Header.ClusterId)
	if got := s.run("get", "a", "--expect-cluster-id", id, "--command-timeout", "2s"); got.code != 0 {
		t.Errorf("with --expect-cluster-id: %+v", got)
	}
}

// What ends a lease's renewal is told as what it is.
func TestKeepAliveTellsALostClusterFromALostLease(t *testing.T) {
	t.Parallel()
	servers := etcdtest.StartServers(t, etcdtest.ServerOptions{})
	s := &session{t: t, endpoint: servers.Endpoints()[0]}
	lease := strings.Fields(s.run("lease", "grant", "2").out)[1]
	if got := s.run("lease", "keep-alive", lease, "--endpoints", "127.0.0.1:1"); got.code != 1 || !strings.Contains(got.err, "connection refused") {
		t.Errorf("at a wrong endpoint: %+v", got)
	}
	if got := s.run("lease", "keep-alive", "1234"); got.code != 1 || !strings.Contains(got.err, "no such lease") {
		t.Errorf("of a lease that is none: %+v", got)
	}
	var out lockedBuffer
	ended := make(chan outcome)
	go func() { ended <- s.runIn(t.Context(), &out, "lease", "keep-alive", lease, "--command-timeout", "3s") }()
	etcdtest.Until(t, "the lease is renewed", func(context.Context) bool { return strings.Contains(out.String(), "keepalived") })
	servers.Members[0].Kill()
	select {
	case got := <-ended:
		if got.code != 1 || strings.Contains(got.err, "no such lease") || !strings.Contains(got.err, "connection refused") {
			t.Errorf("after the server died: %+v", got)
		}
	case <-time.After(time.Minute):
		t.Error("it does not end")
	}
}

// A user who may not ask is not told that the endpoint is unhealthy.
func TestEndpointHealthWithoutCredentials(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, embedded.Options{})
	etcdtest.EnableAuth(t, etcdtest.Client(t, cluster.Endpoints()...), "secret")
	s := &session{t: t, endpoint: cluster.Endpoints()[0]}
	got := s.run("endpoint", "health")
	if got.code != 4 || strings.Contains(got.out, "unhealthy") || !strings.Contains(got.out, "was not judged") {
		t.Errorf("got %+v, want 4 and no verdict", got)
	}
}

// A next step reaches the cluster that this run reached, and shows no password.
func TestNextStepsCarryTheConnection(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, embedded.Options{})
	etcdtest.EnableAuth(t, etcdtest.Client(t, cluster.Endpoints()...), "secret")
	password := filepath.Join(t.TempDir(), "pass word")
	if err := os.WriteFile(password, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &session{t: t, endpoint: "127.0.0.1:1"}
	for _, access := range [][]string{
		{"--user", "root:secret"}, {"--user", "root", "--password", "secret"}, {"--user", "root", "--password-file", password},
	} {
		args := append([]string{"lease", "timetolive", "1234", "--endpoints", cluster.Endpoints()[0], "--expect-cluster-id", ""}, access...)
		got := s.run(args...)
		want := "etcdkit --endpoints=" + cluster.Endpoints()[0] + " --user=root"
		if !strings.Contains(got.err, want) || strings.Contains(got.err, "secret") || !strings.Contains(got.err, " lease list") {
			t.Errorf("%q: %s\nwant %s, and no password", args, got.err, want)
		}
		if access[len(access)-1] == password && !strings.Contains(got.err, "'--password-file="+password+"'") {
			t.Errorf("the password's file is not named: %s", got.err)
		}
	}
	s = &session{t: t, endpoint: cluster.Endpoints()[0], environ: []string{"ETCDCTL_USER=root:secret"}}
	if got := s.run("lease", "timetolive", "1234"); !strings.Contains(got.err, "etcdkit --endpoints="+cluster.Endpoints()[0]+" --user=root lease list") {
		t.Errorf("by variables: %s", got.err)
	}
}
