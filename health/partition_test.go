//go:build full

package health_test

import (
	"errors"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/health"
)

// A member behind a partition answers its clients and still must not be taken
// for a healthy one; nor is another stopped meanwhile.
func TestAPartitionedMemberIsSeenAndStopsADefragmentation(t *testing.T) {
	t.Parallel()
	cluster := start(t, 3, nil)
	leads := leader(t, cluster)
	alone := cluster.Members[(leads+1)%3]
	tools := toolsFor(t, cluster)
	cut := false
	tools.Done = func(s health.Step) {
		if !cut && s.Action == "defrag" {
			cut = true
			if s.Member == alone.Name() {
				alone = cluster.Members[(leads+2)%3]
			}
			cluster.Isolate(alone)
		}
	}
	// The gate may look before the member has noticed, and each look after sees it.
	out, err := health.Defrag(t.Context(), tools, cluster.Endpoints(), health.DefragOptions{All: true, Pause: 3 * time.Second, GateTimeout: 2 * time.Second})
	if err == nil || len(out.Steps) != 1 || len(out.Leftover) != 2 {
		t.Errorf("%v, steps %s, left %v; want a stop after the first", err, done(out), out.Leftover)
	}
	poll(t, "unhealthy for the partitioned member", func() (bool, any) {
		got, err := health.Check(t.Context(), doors(), cluster.Endpoints(), health.Options{Timeout: 2 * time.Second, Reads: 1, Limits: lenient()})
		return errors.Is(err, health.ErrUnhealthy), got.Problems
	})
	writesThrough := connect(t, cluster.Members[leads].Endpoint())
	put(t, writesThrough, "written", "meanwhile")
	cluster.Rejoin(alone)
	poll(t, "a run that ends well", func() (bool, any) {
		out, err := health.Defrag(t.Context(), toolsFor(t, cluster), cluster.Endpoints(), health.DefragOptions{All: true})
		return err == nil, out
	})
}
