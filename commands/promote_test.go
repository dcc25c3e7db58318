//go:build full && linux

package commands_test

import (
	"bufio"
	"errors"
	"os/exec"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

// etcd-io/etcd#15107: a learner is promoted by one command, which waits
// until it has been started and has the leader's data, says how far it is, and
// gives up at its deadline.
func TestMemberPromoteWaits(t *testing.T) {
	t.Parallel()
	servers := etcdtest.StartServers(t, etcdtest.ServerOptions{Flags: []string{"--snapshot-count=100"}})
	client := etcdtest.Client(t, servers.Endpoints()...)
	etcdtest.Fill(t, client, "data/", 20_000, 2<<10)
	etcdkit, state := installed(t, t.TempDir()), t.TempDir()
	run := func(onLine func(string), args ...string) (code int, lines []string) {
		t.Helper()
		cmd := exec.CommandContext(bounded(t), etcdkit, append(args, "--endpoints", servers.Members[0].Endpoint)...)
		cmd.Env = []string{"HOME=" + state, "XDG_STATE_HOME=" + state}
		stderr, err := cmd.StderrPipe()
		if err := errors.Join(err, cmd.Start()); err != nil {
			t.Fatal(err)
		}
		for s := bufio.NewScanner(stderr); s.Scan(); {
			lines = append(lines, s.Text())
			onLine(s.Text())
		}
		_ = cmd.Wait()
		return cmd.ProcessState.ExitCode(), lines
	}
	nothing := func(string) {}
	peer, clients := "http://"+etcdtest.ReservePort(t), "http://"+etcdtest.ReservePort(t)
	if code, lines := run(nothing, "member", "add", "m2", "--peer-urls", peer); code != 0 {
		t.Fatalf("member add: %d, %q", code, lines)
	}
	promote := []string{"member", "promote", peer, "--wait", "--deadline"}
	code, lines := run(nothing, append(promote, "2s")...)
	if all := strings.Join(lines, "\n"); code != 1 || !strings.Contains(all, "not ready within 2s") || !strings.Contains(all, "not been started") {
		t.Errorf("nobody starts it: exit code %d, %s; want 1 and why", code, all)
	}

	started := false
	code, lines = run(func(line string) {
		if strings.Contains(line, "waiting for the new member to be started") && !started {
			started = true
			startMember(t, "m2", peer, clients, servers.InitialCluster()+",m2="+peer)
		}
	}, append(promote, "90s")...)
	if all := strings.Join(lines, "\n"); code != 0 || !started || !strings.Contains(all, "entries behind") {
		t.Errorf("exit code %d, %s; want 0, told how far it is", code, all)
	}
	list, err := client.MemberList(t.Context())
	if err != nil || len(list.Members) != 2 || list.Members[0].IsLearner || list.Members[1].IsLearner {
		t.Errorf("members %v, %v; want two voters", list, err)
	}
	keys, err := etcdtest.Client(t, clients).Get(t.Context(), "data/", clientv3.WithPrefix(), clientv3.WithCountOnly(), clientv3.WithSerializable())
	if err != nil || keys.Count != 20_000 {
		t.Errorf("the new member has %d keys, %v; want 20000", keys.Count, err)
	}
}
