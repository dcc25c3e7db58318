//go:build full && linux

package commands_test

import (
	"bufio"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

// runUntil runs etcdkit and sends it the signal as it begins its nth step, or
// lets it end when it has fewer. It returns the exit code, -1 when killed.
func runUntil(t *testing.T, etcdkit, state string, sig syscall.Signal, nth int, onLine func(string), args ...string) (code int, stdout string) {
	t.Helper()
	cmd := exec.Command(etcdkit, args...)
	cmd.Env = []string{"HOME=" + state, "XDG_STATE_HOME=" + state}
	var out strings.Builder
	cmd.Stdout = &out
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	steps := 0
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if onLine != nil {
			onLine(lines.Text())
		}
		for _, action := range []string{"survey", "compact", "defrag", "move-leader", "disarm", "prove", "remove", "add", "promote"} {
			if strings.HasPrefix(lines.Text(), "etcdkit: "+action) {
				if steps++; steps == nth {
					_ = cmd.Process.Signal(sig)
				}
			}
		}
	}
	err = cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), out.String()
	} else if err != nil {
		t.Fatal(err)
	}
	return 0, out.String()
}

// installed is the test binary under etcdkit's name.
func installed(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	etcdkit := filepath.Join(t.TempDir(), "etcdkit")
	if err := os.Symlink(self, etcdkit); err != nil {
		t.Fatal(err)
	}
	return etcdkit
}

// The terminal hangs up, or the client is killed, at each step of alarm
// recover in turn, and it is run again.
func TestAlarmRecoverGoesOnAfterASignalAtEachStep(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"hung up": syscall.SIGHUP, "killed": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			cluster := etcdtest.Start(t, embedded.Options{Members: 3, Configure: func(_ int, cfg *embed.Config) { cfg.QuotaBackendBytes = 16 << 20 }})
			client := etcdtest.Client(t, cluster.Endpoints()...)
			for {
				if _, err := client.Put(t.Context(), "k", strings.Repeat("x", 500_000)); err != nil {
					break
				}
			}
			etcdkit, state := installed(t), t.TempDir()
			args := []string{"alarm", "recover", "--keep", "1", "--endpoints", cluster.Members[0].Endpoint()}
			for nth := 1; ; nth++ {
				code, out := runUntil(t, etcdkit, state, sig, nth, nil, args...)
				if code == 0 {
					break
				}
				if want := map[syscall.Signal]int{syscall.SIGHUP: 129, syscall.SIGKILL: -1}[sig]; code != want || nth > 10 {
					t.Fatalf("run %d: exit code %d, want %d\n%s", nth, code, want, out)
				}
			}
			if _, err := client.Put(t.Context(), "after", "the recovery"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestMemberReplaceGoesOnAfterASignalAtEachStep(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"hung up": syscall.SIGHUP, "killed": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			cluster := etcdtest.Start(t, embedded.Options{Members: 3})
			cluster.Members[0].Stop()
			port, err := embedded.ReservePort()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(port.Release)
			clientPort, err := embedded.ReservePort()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(clientPort.Release)
			peer := "http://" + port.Addr()
			started := false
			startNew := func(line string) {
				if initial, ok := strings.CutPrefix(strings.TrimSpace(line), "--initial-cluster "); ok && !started {
					started = true
					startMember(t, "m4", peer, "http://"+clientPort.Addr(), strings.TrimSuffix(initial, " \\"))
				}
			}
			etcdkit, state := installed(t), t.TempDir()
			args := []string{"member", "replace", "m1", "--name", "m4", "--peer-urls", peer, "--deadline", "1m", "--endpoints", strings.Join(cluster.Endpoints(), ",")}
			deadline := time.Now().Add(4 * time.Minute)
			for nth := 1; ; {
				code, out := runUntil(t, etcdkit, state, sig, nth, startNew, args...)
				switch {
				case code == 0:
					checkReplaced(t, cluster)
					return
				case time.Now().After(deadline):
					t.Fatalf("never done; last exit code %d\n%s", code, out)
				case code == 5: // the lock of the killed one, which ends by itself
					time.Sleep(time.Second) // until the next try
				case code == 129 || code == -1:
					nth++ // what was done is not done again, so later steps come earlier
					if nth > 3 {
						nth = 1000
					}
				default:
					t.Fatalf("exit code %d\n%s", code, out)
				}
			}
		})
	}
}

func checkReplaced(t *testing.T, cluster *embedded.Cluster) {
	t.Helper()
	list, err := etcdtest.Client(t, cluster.Endpoints()[1:]...).MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range list.Members {
		names = append(names, fmt.Sprint(m.Name, " learner=", m.IsLearner))
	}
	if len(names) != 3 || !strings.Contains(strings.Join(names, ","), "m4 learner=false") {
		t.Errorf("members %v, want m4 among three voters", names)
	}
}

func startMember(t *testing.T, name, peer, client, initial string) {
	t.Helper()
	parse := func(text string) []url.URL {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return []url.URL{*u}
	}
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir, cfg.InitialCluster, cfg.ClusterState = name, filepath.Join(t.TempDir(), name), initial, embed.ClusterStateFlagExisting
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = parse(peer), parse(peer)
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = parse(client), parse(client)
	cfg.UnsafeNoFsync, cfg.ZapLoggerBuilder = true, embed.NewZapLoggerBuilder(zap.NewNop())
	server, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
}
