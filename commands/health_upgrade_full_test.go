//go:build full

package commands_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/internal/testing/process"
	"github.com/etcdkit/etcdkit/internal/testing/reference"
)

// An affected patch promotes a learner in its older store alone, and the
// database, which decides from 3.6 on, keeps it a learner
// (etcd-io/etcd#19557).
func TestUpgradeReadinessOnAnAffectedPatch(t *testing.T) {
	t.Parallel()
	affected := reference.Path(t, reference.Etcd3515)
	servers := etcdtest.StartServers(t, etcdtest.ServerOptions{Program: reference.Etcd3515})
	s := &session{t: t, endpoint: servers.Endpoints()[0]}
	m1 := servers.Members[0]
	client, peer, dir := "http://"+etcdtest.ReservePort(t), "http://"+etcdtest.ReservePort(t), t.TempDir()
	if got := s.run("member", "add", "m2", "--peer-urls", peer); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	process.Start(t, process.Command{
		Path: affected, Log: filepath.Join(dir, "log"), Env: []string{},
		Args: []string{
			"--name", "m2", "--data-dir", filepath.Join(dir, "data"), "--listen-client-urls", client, "--advertise-client-urls", client,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--log-level", "warn",
			"--initial-cluster", fmt.Sprintf("%s=%s,m2=%s", m1.Name, m1.PeerURL, peer), "--initial-cluster-state", "existing", "--initial-cluster-token", "ignored",
		},
	})
	if got := s.run("member", "promote", peer, "--wait", "--yes"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	now := filepath.Join(dir, "now.db")
	if got := s.run("snapshot", "save", now); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	got := s.run("health", "--upgrade-to", "3.6", "--snapshot", now, "--max-latency", "1m")
	for _, want := range []string{"NOT READY for an upgrade to 3.6", "it runs 3.5.15", "learner=true, the member list says false"} {
		if !strings.Contains(got.out, want) || got.code != 3 {
			t.Errorf("exit %d without %q: %s", got.code, want, got.out)
		}
	}
}
