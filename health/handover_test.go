//go:build full

package health_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/health"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

// standStill keeps the member's defragmentation waiting for that long, and the
// member with it, by a snapshot that nobody reads on.
func standStill(ctx context.Context, t *testing.T, endpoint string, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	snapshot, err := connect(t, endpoint).Snapshot(ctx)
	if err != nil {
		t.Error(err)
	}
	if _, err := io.ReadFull(snapshot, make([]byte, 1)); err != nil {
		t.Error(err)
	}
	time.AfterFunc(d, func() {
		cancel()
		_ = snapshot.Close()
	})
}

// While a member stands still for its defragmentation, writes through the
// others go on (ahrtr/etcd-defrag#58): new ones fail for no longer than an
// election takes. What fails at all began while leadership moved. etcd drops
// what reaches the old leader then: it says so to the clients of the old
// leader at once, and to those of the others after its request timeout, 7 s.
// No order of steps avoids that, short of leaving out the leader.
func TestWritesThroughOtherMembersGoOn(t *testing.T) {
	const (
		still    = 15 * time.Second // each member
		election = 5 * time.Second  // of a second or two, on a loaded machine
		margin   = time.Second      // around the move
	)
	for _, members := range []int{3, 5} {
		t.Run(fmt.Sprint(members, " members"), func(t *testing.T) {
			servers := etcdtest.StartServers(t, etcdtest.ServerOptions{Members: members})
			large(t, servers.Endpoints(), 30)
			leads := leading(t, servers)
			follower := servers.Members[(slices.Index(servers.Members, leads)+1)%members]
			tools := serverTools(t, servers.Endpoints())
			tools.Scrape = nil // it would wait for the snapshots that make members stand still
			turns, from := map[string]span{}, map[string]time.Time{}
			tools.Starting = func(action, member string) {
				from[action+member] = time.Now()
				if action == "defrag" {
					standStill(t.Context(), t, server(servers, member).Endpoint, still)
				}
			}
			tools.Done = func(s health.Step) { turns[s.Action+s.Member] = span{from[s.Action+s.Member], time.Now()} }

			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var wg sync.WaitGroup
			streams := map[string]*stream{"all": begin(ctx, t, &wg, "all", servers.Endpoints()...)}
			for _, m := range servers.Members {
				streams[m.Name] = begin(ctx, t, &wg, m.Name, m.Endpoint)
			}
			out, err := health.Defrag(t.Context(), tools, servers.Endpoints(), health.DefragOptions{Members: []string{follower.Name, leads.Name}})
			if want := "defrag " + follower.Name + ", move-leader " + leads.Name + ", defrag " + leads.Name; err != nil || done(out) != want {
				t.Fatalf("%v, steps %s; want %s", err, done(out), want)
			}
			cancel()
			wg.Wait()
			move := turns["move-leader"+leads.Name]
			around := span{move.from.Add(-margin), move.to.Add(margin)}
			for _, m := range servers.Members {
				turn := turns["defrag"+m.Name]
				turn.to = turn.to.Add(election) // it turns writes away until it has applied what was written meanwhile
				attempts := streams[m.Name].outside(turn)
				failing, waiting := worst(attempts)
				t.Logf("%s: of %d writes out of its turn (%s) %d failed; new ones failed for %s, one waited %s", m.Name, len(attempts), turn.to.Sub(turn.from), len(failures(attempts)), failing, waiting)
				if failing > election || waiting > election {
					t.Errorf("%s: writes failed for %s, one waited %s; want at most %s, while members stood still for %s", m.Name, failing, waiting, election, still)
				}
				for _, a := range failures(attempts) {
					if a.from.Before(around.from) || a.from.After(around.to) {
						t.Errorf("%s: a write failed that began %s after leadership began to move: %v", m.Name, a.from.Sub(move.from), a.err)
					}
				}
			}
			failed := failures(streams["all"].attempts)
			t.Logf("a client that balances over all members: %d of %d failed", len(failed), len(streams["all"].attempts))
		})
	}
}
