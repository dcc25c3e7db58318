//go:build bench

package health_test

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/health"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/internal/testing/reference"
)

// benchMegabytes is the live data that a defragmentation copies.
const benchMegabytes = 400

// writer writes, or renews a lease, through one endpoint or through all, and
// knows when it stood still.
type writer struct {
	what    string
	name    string
	gaps    []span
	failed  int
	written int
}

type span struct{ from, to time.Time }

func (s span) overlaps(o span) bool { return s.from.Before(o.to) && o.from.Before(s.to) }

func (w *writer) run(ctx context.Context, request func(context.Context) error) {
	last := time.Now()
	for ctx.Err() == nil {
		once, cancel := context.WithTimeout(ctx, 30*time.Second)
		err := request(once)
		cancel()
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			w.failed++
			continue
		}
		w.written++
		w.gaps = append(w.gaps, span{last, time.Now()})
		last = time.Now()
		time.Sleep(5 * time.Millisecond) // the writers' pace
	}
}

// longest is the longest stall in its own member's turn, and out of it.
func (w *writer) longest(turn span) (own, other time.Duration) {
	for _, g := range w.gaps {
		if g.overlaps(turn) {
			own = max(own, g.to.Sub(g.from))
		} else {
			other = max(other, g.to.Sub(g.from))
		}
	}
	return own, other
}

// during runs writers on every endpoint while work is done.
func during(b *testing.B, servers *etcdtest.Servers, work func()) []*writer {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	var writers []*writer
	begin := func(name string, endpoints ...string) {
		client := etcdtest.Client(b, endpoints...)
		lease, err := client.Grant(ctx, 120)
		if err != nil {
			b.Fatal(err)
		}
		writes, renews := &writer{what: "writes", name: name}, &writer{what: "renewals", name: name}
		writers = append(writers, writes, renews)
		wg.Go(func() {
			writes.run(ctx, func(ctx context.Context) error {
				_, err := client.Put(ctx, fmt.Sprint("writer/", name, "/", writes.written%100), "v")
				return err
			})
		})
		wg.Go(func() {
			renews.run(ctx, func(ctx context.Context) error {
				_, err := client.KeepAliveOnce(ctx, lease.ID)
				return err
			})
		})
	}
	for _, m := range servers.Members {
		begin(m.Name, m.Endpoint)
	}
	begin("all", servers.Endpoints()...)
	time.Sleep(2 * time.Second) // writers find their pace
	work()
	time.Sleep(2 * time.Second) // stalls that have begun end
	cancel()
	wg.Wait()
	return writers
}

// BenchmarkStall shows the longest stall of writers on each endpoint while all
// members are defragmented, by etcdctl defrag --cluster and by defrag-all.
func BenchmarkStall(b *testing.B) {
	servers := etcdtest.StartServers(b, etcdtest.ServerOptions{Members: 3, Flags: []string{"--quota-backend-bytes=4294967296"}})
	client := etcdtest.Client(b, servers.Endpoints()...)
	etcdtest.Fill(b, client, "fill/", benchMegabytes*128, 8<<10) // 100 of these are one request
	tools := health.Tools{
		Doors:   health.Doors{Dial: func(ctx context.Context, ep string) (health.Client, error) { return open(ctx, ep) }},
		Operate: func(_ context.Context, ep string) (health.Operator, error) { return open(b.Context(), ep) },
		Lock: func(ctx context.Context, ttl time.Duration) (health.Lock, error) {
			return health.AcquireLock(ctx, client, ttl)
		},
	}
	var lines []string
	show := func(what string, turns map[string]span, writers []*writer) {
		lines = append(lines, fmt.Sprintf("%s, %s leads", what, leads(b, client, servers)))
		for _, w := range writers {
			own, other := w.longest(turns[w.name])
			turn := turns[w.name].to.Sub(turns[w.name].from)
			lines = append(lines, fmt.Sprintf("  %-8s through %-4s its turn %5.0f ms; longest stall then %5.0f ms, else %5.0f ms; %d of %d failed",
				w.what, w.name, ms(turn), ms(own), ms(other), w.failed, w.failed+w.written))
		}
	}
	for range b.N {
		show("nothing", nil, during(b, servers, func() { time.Sleep(5 * time.Second) })) // nothing is done

		turns := map[string]span{}
		lines = append(lines, "before: "+leads(b, client, servers)+" leads")
		show("after etcdctl defrag --cluster", turns, during(b, servers, func() { upstreamDefrag(b, servers, turns) }))

		turns = map[string]span{}
		tools.Starting = func(_, member string) { turns[member] = span{from: time.Now()} }
		tools.Done = func(s health.Step) { turns[s.Member] = span{turns[s.Member].from, time.Now()} }
		lines = append(lines, "before: "+leads(b, client, servers)+" leads")
		var out *health.Outcome
		writers := during(b, servers, func() {
			var err error
			if out, err = health.Defrag(b.Context(), tools, servers.Endpoints(), health.DefragOptions{All: true}); err != nil {
				b.Errorf("defrag-all: %v", err)
			}
		})
		show("after defrag-all", turns, writers)
		for _, a := range out.Plan {
			lines = append(lines, fmt.Sprintf("  plan: %s %s, forecast %.1f s", a.Action, a.Member, a.PauseSeconds))
		}
	}
	fmt.Println("\n" + strings.Join(lines, "\n"))
}

func ms(d time.Duration) float64 { return 1000 * d.Seconds() }

func leads(b *testing.B, client *clientv3.Client, servers *etcdtest.Servers) string {
	b.Helper()
	for _, m := range servers.Members {
		if s, err := client.Status(b.Context(), m.Endpoint); err == nil && s.Leader == s.Header.MemberId {
			return m.Name
		}
	}
	return "nobody"
}

// upstreamDefrag runs etcdctl and notes when each member had its turn: one
// after the other, in the order of the lines that etcdctl prints after each.
func upstreamDefrag(b *testing.B, servers *etcdtest.Servers, turns map[string]span) {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), reference.Path(b, reference.Etcdctl), "--endpoints", servers.Members[0].Endpoint,
		"--command-timeout=120s", "defrag", "--cluster")
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	from := time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		for _, m := range servers.Members {
			if strings.Contains(lines.Text(), m.Endpoint) {
				turns[m.Name] = span{from, time.Now()}
				from = time.Now()
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		b.Errorf("etcdctl defrag: %v", err)
	}
}

// BenchmarkHealth compares health, less its sample, with etcdctl endpoint
// status --cluster on three members.
func BenchmarkHealth(b *testing.B) {
	servers := etcdtest.StartServers(b, etcdtest.ServerOptions{Members: 3})
	path := reference.Path(b, reference.Etcdctl)
	kit := "../bin/etcdkit"
	for name, command := range map[string][]string{
		"etcdctl endpoint status": {path, "endpoint", "status", "--cluster"},
		"etcdkit health":          {kit, "health", "--sample", "0"},
	} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				cmd := exec.CommandContext(b.Context(), command[0], append(command[1:], "--endpoints", servers.Members[0].Endpoint)...)
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
			}
		})
	}
}
