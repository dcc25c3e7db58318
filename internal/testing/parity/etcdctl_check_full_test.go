//go:build full && !windows

package parity_test

import (
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/testing/parity"
)

// The checks run, and then refuse to run where there are keys of their prefix.
func TestEtcdctlChecksOfTheCluster(t *testing.T) {
	t.Parallel()
	judged := parity.Lines("etcdctl check perf", "etcdctl check datascale", "etcdctl check datascale --load=small --prefix=/other/ --auto-compact --auto-defrag", "etcdctl check perf --load s --auto-compact --auto-defrag")
	for i := range judged {
		judged[i].Judges, judged[i].Bound = true, 5*time.Minute
	}
	lines := append(judged, parity.Lines("etcdctl get --prefix / --keys-only", "etcdctl put /etcdctl-check-perf/a 1", "etcdctl put /etcdctl-check-datascale/a 1", "etcdctl put /mine/a 1")...)
	parity.Scenario{Members: 1, Lines: append(lines, refusedChecks()...)}.Run(t, programs(t), wanted())
}
