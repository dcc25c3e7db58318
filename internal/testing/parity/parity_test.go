//go:build !windows

package parity_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/etcdkit/etcdkit/internal/testing/parity"
	"github.com/etcdkit/etcdkit/internal/testing/process"
	"github.com/etcdkit/etcdkit/internal/testing/reference"
)

// candidateVariable names a variable with the path of a binary to compare in
// place of the one built from this module.
const candidateVariable = "ETCDKIT_PARITY_CANDIDATE"

// candidate is the binary under test, built once by TestMain.
var candidate string // handed from TestMain to the tests

func TestMain(m *testing.M) { os.Exit(run(m)) }

// scenariosAtOnce is how many tests run side by side, unless -parallel says
// otherwise: they wait more than they work.
const scenariosAtOnce = 6

func run(m *testing.M) int {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		_ = flag.Set("test.parallel", strconv.Itoa(scenariosAtOnce))
	}
	process.HeedSignals()
	if candidate = os.Getenv(candidateVariable); candidate != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "etcdkit-parity-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	candidate = filepath.Join(dir, "etcdkit")
	build := exec.CommandContext(context.Background(), "go", "build", "-o", candidate, "github.com/etcdkit/etcdkit/cmd/etcdkit")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the candidate: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// programs links the two sides' binaries to the names they go by.
func programs(t *testing.T) parity.Programs {
	t.Helper()
	p := parity.Programs{Etcd: reference.Path(t, reference.Etcd37), Upstream: t.TempDir(), Ours: t.TempDir()}
	for _, name := range []reference.Program{reference.Etcdctl, reference.Etcdutl} {
		link(t, reference.Path(t, name), filepath.Join(p.Upstream, name.Name()))
		link(t, candidate, filepath.Join(p.Ours, name.Name()))
	}
	return p
}

func link(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Symlink(from, to); err != nil {
		t.Fatal(err)
	}
}

func TestUpstreamDoesNotDifferFromItself(t *testing.T) {
	t.Parallel()
	p := programs(t)
	p.Ours = p.Upstream
	lease := parity.L("etcdctl lease grant 500")
	lease.Capture = "lease"
	parity.Scenario{Members: 1, Lines: append([]parity.Line{lease}, parity.Lines(
		"etcdctl put a b --lease={lease}", "etcdctl get a -w json", "etcdctl lease timetolive {lease} --keys", "etcdctl member list -w table", "etcdctl endpoint status -w table",
		"etcdctl endpoint health", "etcdctl move-leader {m1}", "etcdctl snapshot save s.db", "etcdctl get --endpoints={dead} a --command-timeout=300ms",
	)...)}.Run(t, p, wanted())
}
