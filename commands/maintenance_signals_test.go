//go:build full && linux

package commands_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

// An end is a way in which a command line ends early.
type end struct {
	by   func(cmd *exec.Cmd, terminal *os.File)
	code int // that it ends with
}

func ends() map[string]end {
	return map[string]end{
		"its terminal hung up": {func(_ *exec.Cmd, terminal *os.File) { _ = terminal.Close() }, 129},
		"killed":               {func(cmd *exec.Cmd, _ *os.File) { _ = cmd.Process.Kill() }, -1},
	}
}

// openTerminal opens a pseudo terminal: the side that people look at, and the
// side that programs have.
func openTerminal(t *testing.T) (outside, inside *os.File) {
	t.Helper()
	outside, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(outside.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	inside, err = os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return outside, inside
}

// interrupted runs a command line on a terminal again and again, and ends it
// at the first step that it has not ended at before, until it ends by itself.
type interrupted struct {
	etcdkit, state string
	end            end
	onLine         func(string)
	steps          []string // at which it is ended, each with each of its members
	at             []string // the steps, with their members, that it was ended at
}

// once returns the exit code, -1 when killed, and what was seen on the terminal.
func (r *interrupted) once(t *testing.T, args ...string) (code int, seen string) {
	t.Helper()
	outside, inside := openTerminal(t)
	defer outside.Close()
	cmd := exec.CommandContext(bounded(t), r.etcdkit, args...)
	cmd.Env = []string{"HOME=" + r.state, "XDG_STATE_HOME=" + r.state, "TERM=xterm"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = inside, inside, inside
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := errors.Join(cmd.Start(), inside.Close()); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(outside); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		seen += line + "\n"
		if r.onLine != nil {
			r.onLine(line)
		}
		if step := r.stepOf(line); step != "" && !slices.Contains(r.at, step) {
			r.at = append(r.at, step)
			r.end.by(cmd, outside)
			break
		}
	}
	err := cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), seen
	} else if err != nil {
		t.Fatal(err)
	}
	return 0, seen
}

// stepOf is the step that a line says is begun, with its member.
func (r *interrupted) stepOf(line string) string {
	step, ok := strings.CutPrefix(line, "etcdkit: ")
	action, _, _ := strings.Cut(step, " ")
	if ok && slices.Contains(r.steps, action) {
		return step
	}
	return ""
}

// untilDone goes on until the command ends well. The lock of a killed one, and
// a server still at what it was told, end by themselves: exit code 5.
func (r *interrupted) untilDone(t *testing.T, args ...string) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; {
		before := len(r.at)
		code, seen := r.once(t, args...)
		switch {
		case code == 0:
			return
		case code == r.end.code && len(r.at) > before:
		case code == 5 && time.Now().Before(deadline):
			time.Sleep(time.Second) // until the next try
		default:
			t.Fatalf("after an end at %q: exit code %d\n%s", r.at, code, seen)
		}
	}
}

// wasEndedAtAll checks that no step was missed.
func (r *interrupted) wasEndedAtAll(t *testing.T) {
	t.Helper()
	for _, step := range r.steps {
		if !slices.ContainsFunc(r.at, func(at string) bool { action, _, _ := strings.Cut(at, " "); return action == step }) {
			t.Errorf("ended at %q, never at %s", r.at, step)
		}
	}
}

// The terminal hangs up, or the client is killed, at each step of alarm
// recover in turn, and it is run again. Once disarmed there is no alarm any
// more, so that the last step needs an alarm of its own.
func TestAlarmRecoverGoesOnAfterAnEndAtEachStep(t *testing.T) {
	t.Parallel()
	for name, end := range ends() {
		t.Run(name, func(t *testing.T) {
			cluster := etcdtest.StartServers(t, etcdtest.ServerOptions{Members: 3, Flags: []string{"--quota-backend-bytes=16777216"}})
			client := etcdtest.Client(t, cluster.Endpoints()...)
			for _, steps := range [][]string{{"survey", "compact", "defrag", "move-leader", "disarm"}, {"prove"}} {
				etcdtest.Until(t, "the quota is used up", func(ctx context.Context) bool {
					var err error
					for err == nil {
						_, err = client.Put(ctx, "k", strings.Repeat("x", 500_000))
					}
					return errors.Is(err, rpctypes.ErrNoSpace)
				})
				r := &interrupted{etcdkit: installed(t, t.TempDir()), state: t.TempDir(), end: end, steps: steps}
				r.untilDone(t, "alarm", "recover", "--keep", "1", "--endpoints", cluster.Members[0].Endpoint)
				r.wasEndedAtAll(t)
				if _, err := client.Put(t.Context(), "after", "the recovery"); err != nil {
					t.Error(err)
				}
			}
			etcdtest.Until(t, "nothing of ours left", func(ctx context.Context) bool {
				left, err := client.Get(ctx, "etcdkit/", clientv3.WithPrefix(), clientv3.WithCountOnly())
				return err == nil && left.Count == 0
			})
		})
	}
}

// The same for member replace, with an old member that is dead and one that is
// alive. The members are processes: etcd panics when a member that was removed
// is asked for its status while it ends itself.
func TestMemberReplaceGoesOnAfterAnEndAtEachStep(t *testing.T) {
	t.Parallel()
	for name, end := range ends() {
		for old, dead := range map[string]bool{"a dead member": true, "a living member": false} {
			t.Run(name+", "+old, func(t *testing.T) {
				servers := etcdtest.StartServers(t, etcdtest.ServerOptions{Members: 3})
				if dead {
					servers.Members[0].Kill()
				} else {
					follow(t, servers.Members[0].Endpoint, servers.Endpoints()) // no step hands leadership on
				}
				peer, clients := "http://"+etcdtest.ReservePort(t), "http://"+etcdtest.ReservePort(t)
				started := false
				r := &interrupted{etcdkit: installed(t, t.TempDir()), state: t.TempDir(), end: end, steps: []string{"remove", "add", "promote"}}
				r.onLine = func(line string) {
					if initial, ok := strings.CutPrefix(line, "--initial-cluster "); ok && !started {
						started = true
						startMember(t, "m4", peer, clients, strings.TrimSuffix(initial, " \\"))
					}
				}
				r.untilDone(t, "member", "replace", "m1", "--name", "m4", "--peer-urls", peer, "--deadline", "1m",
					"--endpoints", strings.Join(servers.Endpoints(), ","))
				r.wasEndedAtAll(t)
				checkReplaced(t, servers.Endpoints()[1:]...)
			})
		}
	}
}

// follow makes the member at the endpoint one that does not lead.
func follow(t *testing.T, endpoint string, all []string) {
	t.Helper()
	client := etcdtest.Client(t, endpoint)
	etcdtest.Until(t, endpoint+" to follow", func(ctx context.Context) bool {
		status, err := client.Status(ctx, endpoint)
		if err != nil || status.Leader != status.Header.MemberId {
			return err == nil
		}
		for _, other := range all {
			if o, err := etcdtest.Client(t, other).Status(ctx, other); err == nil && other != endpoint {
				_, _ = client.MoveLeader(ctx, o.Header.MemberId)
			}
		}
		return false
	})
}

func checkReplaced(t *testing.T, endpoints ...string) {
	t.Helper()
	list, err := etcdtest.Client(t, endpoints...).MemberList(t.Context())
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
