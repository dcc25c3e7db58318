package netns_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/testing/netns"
)

// answers reports whether the host refuses a connection, which it can do only
// when it is reached.
func answers(t *testing.T, n *netns.Net, i int, within time.Duration) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	conn, err := n.Dial(ctx, n.Client(i)+":1")
	if err == nil {
		_ = conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

func TestHostsAreReachedUntilTheyAreCutOff(t *testing.T) {
	n := netns.New(t, 2)
	for i := range 2 {
		if !answers(t, n, i, time.Minute) {
			t.Fatalf("host %d is not reached", i)
		}
	}
	n.CutPeers(0)
	if !answers(t, n, 0, time.Minute) {
		t.Error("clients are cut off with the peers")
	}
	n.Cut(0)
	if answers(t, n, 0, 300*time.Millisecond) {
		t.Error("a host that is cut off answers")
	}
	n.Mend(0)
	if !answers(t, n, 0, time.Minute) {
		t.Error("the host does not answer any more")
	}
}
