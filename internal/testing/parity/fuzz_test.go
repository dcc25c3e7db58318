//go:build !windows

package parity_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/etcdkit/etcdkit/internal/testing/parity"
)

// seedVariable names a variable with the seed of one session, to repeat it.
const seedVariable = "ETCDKIT_PARITY_SEED"

// TestRandomSessions runs command lines that chance makes through both sides,
// each session on a cluster of its own, and compares what they print and what
// they leave behind: keys, leases, users, members and files.
func TestRandomSessions(t *testing.T) {
	t.Parallel()
	seeds, lines := []uint64{1}, 40
	if wholeMatrix {
		seeds, lines = nil, 500
		for seed := range uint64(20) {
			seeds = append(seeds, seed+100)
		}
	}
	if text := os.Getenv(seedVariable); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seeds = []uint64{seed}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("keys, leases and users, seed %d", seed), func(t *testing.T) {
			t.Parallel()
			session(newGenerator(seed, "keys", "leases", "users"), lines).Run(t, programs(t), excused())
		})
		t.Run(fmt.Sprintf("cluster and files, seed %d", seed), func(t *testing.T) {
			t.Parallel()
			session(newGenerator(seed, "keys", "cluster", "files", "files"), lines).Run(t, programs(t), excused())
		})
	}
}

// session is a scenario of random lines, between those that make something to
// work on and those that show what is left.
func session(g *generator, n int) parity.Scenario {
	random := g.lines(n)
	first := parity.Lines("etcdctl put a 1", "etcdctl put k/1 x", "etcdctl snapshot save s1.db",
		"etcdutl snapshot restore good.db --data-dir d1", "etcdutl snapshot restore good.db --data-dir d2", "etcdutl snapshot restore good.db --data-dir d3")
	last := parity.Lines("etcdctl get '' --from-key -w json", "etcdctl auth status", "etcdctl user list", "etcdctl role list",
		"etcdctl member list -w json", "etcdctl alarm list", "etcdutl snapshot status d1/member/snap/db", "etcdutl snapshot status d2/member/snap/db", "etcdutl snapshot status d3/member/snap/db")
	return parity.Scenario{
		Members: 1, Server: []string{"--bcrypt-cost=4"}, Lines: concat(first, random, last), Leftovers: true,
		Prepare: func(t testing.TB, dir string) {
			t.Helper()
			files(t, dir)
			for _, name := range g.copies {
				_, kind, _ := strings.Cut(name, "-")
				content, err := os.ReadFile(filepath.Join(dir, kind))
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		},
	}
}

// databases are the files of which lines read a copy: good ones more often.
func databases() []string {
	return []string{"good.db", "good.db", "good.db", "no-trailer", "empty", "short.txt", "long.txt", "truncated", "one-page", "bad-value", "bad-trailer", "bad-meta", "zero-page"}
}

// excused are the differences of random lines that docs/differences.md lists
// for upstream's names.
func excused() []parity.Difference {
	const crash = "upstream crashes: a crash is fixed, not copied"
	match := regexp.MustCompile
	return []parity.Difference{
		{Match: match(`txn.* <<< "lease`), Upstream: "<stack>", Reason: crash, Code: parity.AnyCode},
		{Match: match(`txn.* <<< "m`), Upstream: "<stack>", Reason: crash, Code: exitInvalidInput, Stderr: "malformed comparison"},
		{Match: match(`^etcdutl .*(status|hashkv|restore)`), Upstream: "<stack>", Reason: crash, Code: 1, Stderr: "Error: "},
		// The same crash, where upstream's process ends before it has written a stack.
		{Match: match(`^etcdutl .*(status|hashkv|restore)`), Upstream: "Page expected to be", Reason: crash, Code: 1, Stderr: "Error: "},
		{Match: match(`^etcdctl lease revoke .*protobuf`), Upstream: "marshal unsupported", Reason: "upstream prints a Go value", Code: exitBadFeature, Stderr: "protobuf not supported as output format"},
		{Match: match(`^etcdctl .*get.* --stream`), Upstream: "Error: etcdserver:", Reason: "the request that learns the revision is logged", Code: 1, Stderr: "retrying of unary invoker failed"},
	}
}

// Exit codes of upstream's etcdctl.
const (
	exitInvalidInput = 3
	exitBadFeature   = 4
)
