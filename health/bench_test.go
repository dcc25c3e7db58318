//go:build bench

package health_test

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"os/exec"
	"slices"
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

// benchTools are the tools of maintenance on a benchmark's cluster.
func benchTools(b *testing.B, servers *etcdtest.Servers) health.Tools {
	b.Helper()
	return health.Tools{
		Doors:   health.Doors{Dial: func(ctx context.Context, ep string) (health.Client, error) { return open(ctx, ep) }},
		Operate: func(_ context.Context, ep string) (health.Operator, error) { return open(b.Context(), ep) },
		Lock: func(ctx context.Context, ttl time.Duration) (health.Lock, error) {
			return health.AcquireLock(ctx, etcdtest.Client(b, servers.Endpoints()...), ttl)
		},
	}
}

// BenchmarkStall shows the longest stall of writers on each endpoint while all
// members are defragmented, by etcdctl defrag --cluster and by defrag-all.
func BenchmarkStall(b *testing.B) {
	servers := etcdtest.StartServers(b, etcdtest.ServerOptions{Members: 3, Flags: []string{"--quota-backend-bytes=4294967296"}})
	client := etcdtest.Client(b, servers.Endpoints()...)
	etcdtest.Fill(b, client, "fill/", benchMegabytes*128, 8<<10) // 100 of these are one request
	tools := benchTools(b, servers)
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
// status --cluster on three members, in pairs of which the median counts.
func BenchmarkHealth(b *testing.B) {
	const pairs = 15
	servers := etcdtest.StartServers(b, etcdtest.ServerOptions{Members: 3})
	took := func(command ...string) time.Duration {
		cmd := exec.CommandContext(b.Context(), command[0], append(command[1:], "--endpoints", servers.Members[0].Endpoint)...)
		from := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		return time.Since(from)
	}
	for range b.N {
		var theirs, ours []time.Duration
		for range pairs {
			theirs = append(theirs, took(reference.Path(b, reference.Etcdctl), "endpoint", "status", "--cluster"))
			ours = append(ours, took("../bin/etcdkit", "health", "--sample", "0"))
		}
		slices.Sort(theirs)
		slices.Sort(ours)
		fmt.Printf("\netcdctl endpoint status --cluster: median %.0f ms, least %.0f ms\netcdkit health --sample 0: median %.0f ms, least %.0f ms; %.1f times the median (at most 3 are wanted)\n",
			ms(theirs[pairs/2]), ms(theirs[0]), ms(ours[pairs/2]), ms(ours[0]), ms(ours[pairs/2])/ms(theirs[pairs/2]))
	}
}

// BenchmarkHandover shows what becomes of writes through every member, a
// hundred a second each, while leadership changes: moved by etcd alone, moved
// by us, and taken over after the leader was killed.
func BenchmarkHandover(b *testing.B) {
	const moves = 10
	servers := etcdtest.StartServers(b, etcdtest.ServerOptions{Members: 3})
	tools := benchTools(b, servers)
	var lines []string
	ways := map[string]func() (gone string){
		"etcd's own move": func() string { ownMove(b, servers); return "" },
		"ours": func() string {
			if _, _, err := health.MoveToAny(b.Context(), tools, servers.Endpoints()); err != nil {
				b.Error(err)
			}
			return ""
		},
		"the leader killed": func() string {
			leads := leading(b, servers)
			leads.Kill()
			time.Sleep(4 * time.Second) // an election
			leads.Start()
			return leads.Name
		},
	}
	for range b.N {
		for _, name := range slices.Sorted(maps.Keys(ways)) {
			kinds, writes := map[string]int{}, 0
			var failing, waiting time.Duration
			for range moves {
				gone := ""
				for member, s := range whileWriting(b, servers, func() { gone = ways[name]() }) {
					if member == gone {
						continue
					}
					f, w := worst(s.attempts)
					failing, waiting = max(failing, f), max(waiting, w)
					writes += len(s.attempts)
					for _, a := range failures(s.attempts) {
						kinds[fmt.Sprintf("%v after %.0f s", a.err, a.to.Sub(a.from).Seconds())]++
					}
				}
			}
			lines = append(lines, fmt.Sprintf("%s, %d times: of %d writes failed %v; all new ones for at most %.0f ms, one waited %.0f ms",
				name, moves, writes, kinds, ms(failing), ms(waiting)))
		}
	}
	fmt.Println("\n" + strings.Join(lines, "\n"))
}

// whileWriting runs a stream through each member, for a while before and after
// the work.
func whileWriting(b *testing.B, servers *etcdtest.Servers, work func()) map[string]*stream {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	streams := map[string]*stream{}
	for _, m := range servers.Members {
		streams[m.Name] = begin(ctx, b, &wg, m.Name, m.Endpoint)
	}
	time.Sleep(500 * time.Millisecond)
	work()
	time.Sleep(500 * time.Millisecond)
	cancel()
	wg.Wait()
	return streams
}

// ownMove asks the leader to hand on to any other, and nothing more.
func ownMove(b *testing.B, servers *etcdtest.Servers) {
	b.Helper()
	leads := leading(b, servers)
	client := etcdtest.Client(b, leads.Endpoint)
	list, err := client.MemberList(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for _, m := range list.Members {
		if m.Name != leads.Name {
			if _, err := client.MoveLeader(b.Context(), m.ID); err != nil {
				b.Error(err)
			}
			return
		}
	}
}
