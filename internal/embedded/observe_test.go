package embedded_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/embedded"
)

func TestObserveTellsOfEverySyncAndCommit(t *testing.T) {
	var syncs, commits atomic.Int64
	count := func(n *atomic.Int64) func(time.Duration) {
		return func(took time.Duration) {
			if took > 0 {
				n.Add(1)
			}
		}
	}
	stop := embedded.Observe(count(&syncs), count(&commits))
	cluster, err := embedded.Start(t.Context(), embedded.Options{Dir: t.TempDir(), Fsync: true})
	if err != nil {
		t.Fatal(err)
	}
	before := syncs.Load()
	c := client(t, cluster.Endpoints()...)
	for range 10 { // one after the other, so that each is synced by itself
		if _, err := c.Put(t.Context(), "a", "1"); err != nil {
			t.Fatal(err)
		}
	}
	if got := syncs.Load() - before; got < 10 {
		t.Errorf("%d syncs for ten puts", got)
	}
	if err := cluster.Close(); err != nil {
		t.Fatal(err)
	}
	stop()
	if commits.Load() == 0 {
		t.Error("no commit was told, and closing the database is one")
	}
}
