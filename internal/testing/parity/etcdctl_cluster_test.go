//go:build !windows

package parity_test

import (
	"strconv"
	"testing"

	"github.com/etcdkit/etcdkit/internal/testing/parity"
)

func sorted(lines []parity.Line) []parity.Line {
	for i := range lines {
		lines[i].Sorted = true
	}
	return lines
}

func TestEtcdctlOneMember(t *testing.T) {
	t.Parallel()
	lines := concat(
		inFormats("etcdctl member list", "etcdctl endpoint status", "etcdctl endpoint health", "etcdctl endpoint hashkv", "etcdctl alarm list", "etcdctl alarm disarm", "etcdctl move-leader {m1}",
			"etcdctl downgrade validate 3.6", "etcdctl downgrade cancel", "etcdctl member update {m1} --peer-urls={peer1}", "etcdctl member promote {m1}"),
		parity.Lines("etcdctl put a 1", "etcdctl put a 2", "etcdctl endpoint hashkv --rev=2", "etcdctl endpoint hashkv --rev=2 -w json", "etcdctl endpoint hashkv --rev=9999", "etcdctl endpoint hashkv --rev=-1", "etcdctl endpoint hashkv --cluster",
			"etcdctl endpoint health --cluster", "etcdctl endpoint status --cluster", "etcdctl endpoint status a", "etcdctl endpoint health a b", "etcdctl defrag", "etcdctl defrag --cluster", "etcdctl defrag a", "etcdctl defrag -w json",
			"etcdctl defrag -w bogus", "etcdctl endpoint health -w bogus", "etcdctl alarm list a", "etcdctl alarm disarm a", "etcdctl member list a", "etcdctl member list --consistency=s", "etcdctl member list --consistency=x",
			"etcdctl member add", "etcdctl member add x", "etcdctl member add x y", "etcdctl member add x http://a:1", "etcdctl member add x HTTP://a:1 http://b:2", "etcdctl member add x --peer-urls=junk", "etcdctl member add x --peer-urls={peer1}", "etcdctl member add x --peer-urls=http://a",
			"etcdctl member remove", "etcdctl member remove zzz", "etcdctl member remove 1234", "etcdctl member remove {m1} x", "etcdctl member update {m1}", "etcdctl member update zz --peer-urls=http://127.0.0.1:1", "etcdctl member update 1234 --peer-urls=http://127.0.0.1:1",
			"etcdctl member update {m1} --peer-urls=junk", "etcdctl member promote", "etcdctl member promote zz", "etcdctl member promote 1234", "etcdctl move-leader", "etcdctl move-leader zz", "etcdctl move-leader 1234", "etcdctl move-leader 1 2",
			"etcdctl downgrade validate", "etcdctl downgrade validate 3.5", "etcdctl downgrade validate x", "etcdctl downgrade validate ''", "etcdctl downgrade validate 3.6 3.5", "etcdctl downgrade enable", "etcdctl downgrade enable 9.9", "etcdctl downgrade enable 3.6 x", "etcdctl downgrade cancel x"),
		parity.Lines("etcdctl snapshot save", "etcdctl snapshot save a b", "etcdctl snapshot save snap.db", "etcdctl snapshot save snap.db -w json", "etcdctl snapshot save /no/such/folder/snap.db", "etcdctl snapshot save '' ", "etcdctl snapshot save snap.db --endpoints={ep1},{dead}",
			"etcdctl snapshot save late.db --command-timeout=1ns", "etcdctl snapshot status snap.db", "etcdctl snapshot restore snap.db", "etcdctl snapshot", "etcdctl snapshot save snap2.db --hex -w bogus"),
	)
	parity.Scenario{Members: 1, Lines: lines}.Run(t, programs(t), wanted())
}

func TestEtcdctlNoSpace(t *testing.T) {
	t.Parallel()
	big := make([]byte, 1<<20)
	for i := range big {
		big[i] = 'x'
	}
	var lines []parity.Line
	for range 6 {
		lines = append(lines, stdin("etcdctl put big", string(big)))
	}
	lines = concat(lines, inFormats("etcdctl alarm list", "etcdctl endpoint health", "etcdctl endpoint status", "etcdctl alarm disarm"), parity.Lines("etcdctl put small x"))
	// The size of the file counts, and grows with a commit: each write has its own.
	parity.Scenario{Members: 1, Server: []string{"--quota-backend-bytes=3000000", "--backend-batch-limit=1"}, Lines: lines}.Run(t, programs(t), wanted())
}

func TestEtcdctlThreeMembers(t *testing.T) {
	t.Parallel()
	lines := concat(
		// In protobuf the term of the last election shows.
		parity.Lines("etcdctl member list", "etcdctl member list -w json", "etcdctl member list -w fields", "etcdctl member list -w table", "etcdctl member list -w json --hex", "etcdctl endpoint status --endpoints={ep}", "etcdctl endpoint status --endpoints={ep} -w json", "etcdctl endpoint status --endpoints={ep} -w fields", "etcdctl endpoint status --endpoints={ep} -w table", "etcdctl endpoint status --cluster -w table",
			"etcdctl endpoint hashkv --endpoints={ep}", "etcdctl endpoint hashkv --cluster -w table", "etcdctl endpoint hashkv --cluster -w json", "etcdctl endpoint hashkv --cluster -w fields", "etcdctl defrag --cluster", "etcdctl defrag --endpoints={ep}",
			"etcdctl endpoint status --endpoints={ep1},{dead} --command-timeout=300ms", "etcdctl endpoint status --endpoints={ep1},{dead} --command-timeout=300ms -w json", "etcdctl endpoint hashkv --endpoints={dead},{ep2} --command-timeout=300ms",
			"etcdctl endpoint hashkv --endpoints={dead},{ep2} --command-timeout=300ms -w json", "etcdctl defrag --endpoints={dead},{ep3} --command-timeout=300ms", "etcdctl move-leader {m2} --endpoints={ep2},{ep3}", "etcdctl snapshot save x.db --endpoints={ep}"),
		sorted(parity.Lines("etcdctl endpoint health --endpoints={ep}", "etcdctl endpoint health --cluster", "etcdctl endpoint health --endpoints={ep1},{dead} --command-timeout=1s", "etcdctl endpoint health --endpoints={ep1},{dead} --command-timeout=1s -w table",
			"etcdctl endpoint health --endpoints={ep1},{dead} --command-timeout=1s -w fields")),
		parity.Lines("etcdctl member promote {m1}"),
		membership(),
		inFormats("etcdctl move-leader {m2} --endpoints={ep}", "etcdctl move-leader {m1} --endpoints={ep}"),
	)
	// On a busy machine the default of a second has elections of its own accord.
	parity.Scenario{Members: 3, Server: []string{"--election-timeout=5000"}, Lines: lines}.Run(t, programs(t), wanted())
}

// membership adds a learner in each format and removes it again. Where it comes
// in the list is up to its id.
func membership() []parity.Line {
	var lines []parity.Line
	for i, format := range []string{"simple", "json", "fields", "table", "json --hex", "bogus"} {
		// The same URL in the same second would give the id of the one removed.
		url := "http://127.0.0.1:" + strconv.Itoa(10*(i+1))
		list := parity.L("etcdctl member list")
		list.Capture, list.CaptureBy = "added", `([0-9a-f]+), unstarted`
		lines = append(lines, sorted([]parity.Line{
			parity.L("etcdctl member add new --peer-urls=" + url + ",http://127.0.0.1:3 --learner -w " + format), list,
			parity.L("etcdctl member update {added} --peer-urls=" + url + "1 -w " + format), parity.L("etcdctl member promote {added} -w " + format),
			parity.L("etcdctl member remove {added} -w " + format), parity.L("etcdctl member remove {added}"),
		})...)
	}
	return lines
}

// refusedChecks are checks that end before they write anything.
func refusedChecks() []parity.Line {
	return parity.Lines("etcdctl check perf", "etcdctl check datascale", "etcdctl check perf a", "etcdctl check perf --prefix=/mine/", "etcdctl check datascale --prefix=/mine/ -w json", "etcdctl check perf --prefix=/mine/ --auto-defrag --auto-compact",
		"etcdctl check perf --load=nosuch --prefix=/mine/", "etcdctl check datascale --load=nosuch", "etcdctl check datascale --load=XL", "etcdctl check perf --load=", "etcdctl check perf --load=medium --prefix=/mine/", "etcdctl check datascale --load=m --prefix=/mine/",
		"etcdctl check perf --prefix", "etcdctl check datascale --auto-compact=junk", "etcdctl check", "etcdctl check nosuch")
}

func TestEtcdctlRefusedChecks(t *testing.T) {
	t.Parallel()
	lines := parity.Lines("etcdctl put /etcdctl-check-perf/a 1", "etcdctl put /etcdctl-check-datascale/a 1", "etcdctl put /mine/a 1")
	parity.Scenario{Members: 1, Lines: append(lines, refusedChecks()...)}.Run(t, programs(t), wanted())
}
