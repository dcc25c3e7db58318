//go:build full && linux

package health_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/etcdkit/etcdkit/health"
	"github.com/etcdkit/etcdkit/internal/testing/netns"
	"github.com/etcdkit/etcdkit/internal/testing/process"
	"github.com/etcdkit/etcdkit/internal/testing/reference"
)

// farAway is a cluster of upstream's etcd whose members are hosts of a network
// of their own, with a free host beside them.
type farAway struct {
	*netns.Net
	t       *testing.T
	members int
	dir     string
}

func startFarAway(t *testing.T, members int) *farAway {
	t.Helper()
	f := &farAway{Net: netns.New(t, members+1), t: t, members: members, dir: t.TempDir()}
	var initial []string
	for i := range members {
		initial = append(initial, f.name(i)+"="+f.peerURL(i))
	}
	for i := range members {
		f.start(i, "new", strings.Join(initial, ","))
	}
	f.leader()
	return f
}

func (f *farAway) name(i int) string     { return fmt.Sprint("m", i+1) }
func (f *farAway) endpoint(i int) string { return "http://" + f.Client(i) + ":2379" }
func (f *farAway) peerURL(i int) string  { return "http://" + f.Peer(i) + ":2380" }

func (f *farAway) start(i int, state, initial string) {
	path, args := f.Command(i, reference.Path(f.t, reference.Etcd37), "--name", f.name(i), "--data-dir", filepath.Join(f.dir, f.name(i)),
		"--listen-client-urls", f.endpoint(i), "--advertise-client-urls", f.endpoint(i),
		"--listen-peer-urls", f.peerURL(i), "--initial-advertise-peer-urls", f.peerURL(i),
		"--initial-cluster", initial, "--initial-cluster-state", state, "--unsafe-no-fsync", "--log-level", "warn")
	log := filepath.Join(f.dir, f.name(i)+".log")
	f.t.Cleanup(func() {
		if f.t.Failed() {
			text, _ := os.ReadFile(log)
			f.t.Logf("%s: %s", f.name(i), text)
		}
	})
	process.Start(f.t, process.Command{Path: path, Args: args, Log: log})
}

// endpoints are those of the members, but for some.
func (f *farAway) endpoints(without ...int) (out []string) {
	for i := range f.members {
		if !slices.Contains(without, i) {
			out = append(out, f.endpoint(i))
		}
	}
	return out
}

func (f *farAway) open(endpoints ...string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints: endpoints, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(f.Dial)},
	})
}

func (f *farAway) tools() health.Tools {
	return health.Tools{
		Doors:   health.Doors{Dial: func(_ context.Context, ep string) (health.Client, error) { return f.open(ep) }},
		Operate: func(_ context.Context, ep string) (health.Operator, error) { return f.open(ep) },
		Lock: func(ctx context.Context, ttl time.Duration) (health.Lock, error) {
			client, err := f.open(f.endpoints()...)
			if err != nil {
				return nil, err
			}
			f.t.Cleanup(func() { _ = client.Close() })
			return health.AcquireLock(ctx, client, ttl)
		},
	}
}

// leader is the index of the member that leads, which all of those asked agree
// on.
func (f *farAway) leader(without ...int) (leads int) {
	f.t.Helper()
	poll(f.t, "a leader", func() (bool, any) {
		facts, err := health.Gather(f.t.Context(), f.tools().Doors, f.endpoints(without...), health.Options{Timeout: 5 * time.Second, Reads: 1, Only: true})
		leads = slices.IndexFunc(facts.Members, func(m health.Member) bool { return m.Name != "" && m.Name == facts.Cluster.Leader })
		if leads >= 0 {
			_, err = fmt.Sscanf(facts.Members[leads].Name, "m%d", &leads)
			leads--
		}
		return err == nil && leads >= 0 && facts.Cluster.Answering == f.members-len(without), facts
	})
	return leads
}

// writes checks that the members, but for some, take a write soon.
func (f *farAway) writes(without ...int) {
	f.t.Helper()
	client, err := f.open(f.endpoints(without...)...)
	if err != nil {
		f.t.Fatal(err)
	}
	defer client.Close()
	poll(f.t, "a write", func() (bool, any) {
		ctx, cancel := context.WithTimeout(f.t.Context(), 5*time.Second)
		defer cancel()
		_, err := client.Put(ctx, "after", "the cut")
		return err == nil, err
	})
}

// A member whose cable to the others is pulled stops defrag-all, whether it
// waits for its turn or is to hand leadership on; and the rest goes on serving.
func TestDefragmentationOverACutNetwork(t *testing.T) {
	for name, tc := range map[string]struct {
		action string // when it begins
		leads  bool   // the leader is cut off, else a follower that is not done
		all    bool   // from clients as well
		want   error
	}{
		"a follower before its turn":                 {action: "defrag"},
		"a follower before its turn, by clients too": {action: "defrag", all: true},
		"the leader as it hands on":                  {action: "move-leader", leads: true, want: health.ErrNoSuccessor},
		"the leader as it hands on, by clients too":  {action: "move-leader", leads: true, all: true, want: health.ErrNoSuccessor},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFarAway(t, 3)
			tools, alone := f.tools(), -1
			leads := f.leader()
			tools.Starting = func(action, member string) {
				if alone >= 0 || action != tc.action {
					return
				}
				alone = leads
				for i := range f.members {
					if !tc.leads && i != leads && f.name(i) != member {
						alone = i
					}
				}
				if tc.all {
					f.Cut(alone)
				} else {
					f.CutPeers(alone)
				}
			}
			opts := health.DefragOptions{All: true, Pause: 5 * time.Second, GateTimeout: 10 * time.Second, StallTimeout: 10 * time.Second}
			out, err := health.Defrag(t.Context(), tools, f.endpoints(), opts)
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) || !slices.Contains(out.Leftover, f.name(alone)) {
				t.Errorf("%v, steps %s, left %v; want a stop before %s", err, done(out), out.Leftover, f.name(alone))
			}
			f.writes(alone)
			f.Mend(alone)
			f.leader()
			poll(t, "a second run that ends well", func() (bool, any) {
				out, err := health.Defrag(t.Context(), f.tools(), f.endpoints(), health.DefragOptions{All: true})
				return err == nil, out
			})
		})
	}
}

// A member that cannot be reached is replaced, and the new one's cable is
// pulled as it starts, which makes it give up: it gets its vote when it was
// started again, and the old one, back as well, is no member any more.
func TestReplacementOverACutNetwork(t *testing.T) {
	f := startFarAway(t, 3)
	const added = 3
	old := (f.leader() + 1) % 3
	f.Cut(old)
	f.leader(old)
	waited, initial := 0, ""
	out, err := health.Replace(t.Context(), f.tools(), f.endpoints(old), health.ReplaceOptions{
		Old: f.name(old), Name: f.name(added), PeerURLs: []string{f.peerURL(added)}, Deadline: 2 * time.Minute,
		Added: func(command string) {
			_, initial, _ = strings.Cut(command, "--initial-cluster ")
			initial, _, _ = strings.Cut(initial, " ")
			f.CutPeers(added)
			f.start(added, "existing", initial)
		},
		Progress: func(health.Promotion) {
			if waited++; waited == 5 {
				f.Mend(added)
				f.start(added, "existing", initial)
			}
		},
	})
	if want := fmt.Sprintf("remove %s, add m4, promote m4", f.name(old)); err != nil || done(out) != want || waited < 5 {
		t.Errorf("%v, steps %s after %d looks; want %s, after the cut", err, done(out), waited, want)
	}
	f.Mend(old)
	f.writes(old)
	client, err := f.open(f.endpoint((old + 1) % 3))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	want := slices.Sorted(slices.Values([]string{f.name((old + 1) % 3), f.name((old + 2) % 3), "m4"}))
	if got := voters(t, client); got != strings.Join(want, ",") {
		t.Errorf("voters %s, want %s", got, want)
	}
}
