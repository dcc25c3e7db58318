//go:build full

package health_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/health"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

// server is the running server of that name.
func server(servers *etcdtest.Servers, name string) *etcdtest.Server {
	return servers.Members[slices.IndexFunc(servers.Members, func(m *etcdtest.Server) bool { return m.Name == name })]
}

// writes checks that the cluster takes a write, soon.
func writes(t *testing.T, endpoints ...string) {
	t.Helper()
	client := connect(t, endpoints...)
	poll(t, "a write", func() (bool, any) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := client.Put(ctx, "after", "the fault")
		return err == nil, err
	})
}

// others are the endpoints of all members but those named.
func others(servers *etcdtest.Servers, names ...string) (endpoints []string) {
	for _, m := range servers.Members {
		if !slices.Contains(names, m.Name) {
			endpoints = append(endpoints, m.Endpoint)
		}
	}
	return endpoints
}

// large fills the cluster so that a defragmentation takes a while.
func large(t *testing.T, endpoints []string, megabytes int) {
	t.Helper()
	client := connect(t, endpoints...)
	value := strings.Repeat("x", 1<<20)
	for i := range megabytes {
		put(t, client, "large/"+string(rune('a'+i%26))+string(rune('a'+i/26%26))+string(rune('a'+i/676)), value)
	}
}

func TestAMemberKilledInItsTurn(t *testing.T) {
	for _, members := range []int{3, 5} {
		servers := etcdtest.StartServers(t, etcdtest.ServerOptions{Members: members})
		large(t, servers.Endpoints(), 100)
		tools := serverTools(t, servers.Endpoints())
		victim := ""
		var once sync.Once
		tools.Starting = func(action, member string) {
			if action == "defrag" {
				once.Do(func() {
					victim = member
					time.AfterFunc(20*time.Millisecond, func() { server(servers, member).Kill() })
				})
			}
		}
		out, err := health.Defrag(t.Context(), tools, servers.Endpoints(), health.DefragOptions{All: true, GateTimeout: 5 * time.Second, StallTimeout: 5 * time.Second})
		if err == nil || len(out.Leftover) < members-1 {
			t.Errorf("%d members: %v, steps %s, left %v; want a stop", members, err, done(out), out.Leftover)
		}
		writes(t, others(servers, victim)...)
	}
}

func TestTheLeaderKilledWhileLeadershipMoves(t *testing.T) {
	servers := etcdtest.StartServers(t, etcdtest.ServerOptions{Members: 3})
	tools := serverTools(t, servers.Endpoints())
	victim := ""
	tools.Starting = func(action, member string) {
		if action == "move-leader" {
			victim = member
			server(servers, member).Kill()
		}
	}
	out, err := health.Defrag(t.Context(), tools, servers.Endpoints(), health.DefragOptions{All: true, GateTimeout: 5 * time.Second, StallTimeout: 5 * time.Second})
	if err == nil || victim == "" {
		t.Errorf("%v, steps %s; want an error", err, done(out))
	}
	writes(t, others(servers, victim)...)
}

// A member that hangs, as behind a partition: its ports are open and nothing
// is answered.
func TestAMemberThatHangs(t *testing.T) {
	for name, when := range map[string]string{"before its turn": "gate", "in its turn": "defrag"} {
		t.Run(name, func(t *testing.T) {
			servers := etcdtest.StartServers(t, etcdtest.ServerOptions{Members: 3})
			large(t, servers.Endpoints(), 50)
			tools := serverTools(t, servers.Endpoints())
			victim := ""
			hang := func(name string) {
				if victim == "" {
					victim = name
					server(servers, name).Pause()
				}
			}
			tools.Starting = func(action, member string) {
				if when == "defrag" && action == "defrag" {
					hang(member)
				}
			}
			tools.Done = func(s health.Step) {
				if when == "gate" && s.Action == "defrag" {
					for _, m := range servers.Members {
						if m.Name != s.Member {
							hang(m.Name)
						}
					}
				}
			}
			began := time.Now()
			out, err := health.Defrag(t.Context(), tools, servers.Endpoints(), health.DefragOptions{All: true, GateTimeout: 10 * time.Second, StallTimeout: 10 * time.Second})
			if err == nil || victim == "" {
				t.Errorf("%v, steps %s; want an error", err, done(out))
			}
			if took := time.Since(began); took > 2*time.Minute {
				t.Errorf("it took %s to notice", took)
			}
			writes(t, others(servers, victim)...)
			server(servers, victim).Resume()
			poll(t, "a second run that ends well", func() (bool, any) {
				out, err := health.Defrag(t.Context(), tools, servers.Endpoints(), health.DefragOptions{All: true})
				return err == nil, out
			})
		})
	}
}

// The client is killed, so that nothing is cleaned up, and run again: what it
// leaves is a lock that ends by itself.
func TestAKilledClientLeavesALockThatEnds(t *testing.T) {
	servers := etcdtest.StartServers(t, etcdtest.ServerOptions{Members: 3})
	tools := serverTools(t, servers.Endpoints())
	client, err := open(t.Context(), servers.Endpoints()...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := health.AcquireLock(t.Context(), client, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil { // as the kernel does for a killed process
		t.Fatal(err)
	}
	if _, err := health.Defrag(t.Context(), tools, servers.Endpoints(), health.DefragOptions{All: true}); !errors.Is(err, health.ErrLocked) {
		t.Errorf("at once: %v, want ErrLocked", err)
	}
	poll(t, "the lock's end", func() (bool, any) {
		out, err := health.Defrag(t.Context(), tools, servers.Endpoints(), health.DefragOptions{All: true})
		return err == nil, out
	})
}

// A lock that is lost stops the run before the next member.
func TestALostLockStopsTheRun(t *testing.T) {
	servers := etcdtest.StartServers(t, etcdtest.ServerOptions{Members: 3})
	tools := serverTools(t, servers.Endpoints())
	client := connect(t, servers.Endpoints()...)
	tools.Done = func(health.Step) {
		leases, err := client.Leases(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		for _, lease := range leases.Leases {
			if _, err := client.Revoke(t.Context(), lease.ID); err != nil {
				t.Error(err)
			}
		}
	}
	out, err := health.Defrag(t.Context(), tools, servers.Endpoints(), health.DefragOptions{All: true, Pause: 15 * time.Second})
	if !errors.Is(err, health.ErrLocked) || len(out.Steps) != 1 {
		t.Errorf("%v, steps %s; want ErrLocked after one step", err, done(out))
	}
}
