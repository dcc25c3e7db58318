// Package netns gives tests networks of their own, in namespaces of the
// kernel, whose links can be cut: what a pulled cable does, without a reset
// that tells anybody.
package netns

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Net is a network of hosts, each with an address on a network for clients
// and on one for peers. They exist in no other namespace, this process's own
// among them.
type Net struct {
	t     testing.TB
	name  string
	hosts int
}

// New builds a network of that many hosts for the length of the test. It is
// taken down even when this process is killed. Without root or ip(8) the test
// is skipped.
func New(t testing.TB, hosts int) *Net {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: network namespaces need root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("SKIPPED: network namespaces need ip, of iproute2")
	}
	n := &Net{t: t, name: fmt.Sprintf("etcdkit-%d-%s", os.Getpid(), rand.Text()[:4]), hosts: hosts}
	n.watch()
	if out, err := exec.Command("ip", "netns", "add", n.hub()).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: no network namespaces here: %v: %s", err, out)
	}
	for _, bridge := range []string{"c", "p"} {
		n.ip("-n", n.hub(), "link", "add", bridge, "type", "bridge")
		n.ip("-n", n.hub(), "link", "set", bridge, "up")
	}
	n.ip("-n", n.hub(), "addr", "add", "10.213.1.254/24", "dev", "c")
	for i := range hosts {
		n.ip("netns", "add", n.host(i))
		n.ip("-n", n.host(i), "link", "set", "lo", "up")
		for network, bridge := range []string{"c", "p"} {
			port := fmt.Sprint(bridge, i)
			n.ip("-n", n.hub(), "link", "add", port, "type", "veth", "peer", "name", bridge, "netns", n.host(i))
			n.ip("-n", n.hub(), "link", "set", port, "master", bridge, "up")
			n.ip("-n", n.host(i), "addr", "add", fmt.Sprintf("10.213.%d.%d/24", network+1, i+1), "dev", bridge)
			n.ip("-n", n.host(i), "link", "set", bridge, "up")
		}
	}
	return n
}

func (n *Net) hub() string       { return n.name + "-hub" }
func (n *Net) host(i int) string { return fmt.Sprint(n.name, "-", i) }

// watch takes the namespaces down when the test ends, or this process does in
// whatever way: then the pipe that a child of its own group waits for closes.
func (n *Net) watch() {
	n.t.Helper()
	script := "cat >/dev/null; ip netns del " + n.hub()
	for i := range n.hosts {
		script += "; ip netns del " + n.host(i)
	}
	janitor := exec.Command("sh", "-c", script)
	janitor.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	alive, err := janitor.StdinPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	if err := janitor.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		_ = alive.Close()
		_ = janitor.Wait() // it complains of what was never made
	})
}

func (n *Net) ip(args ...string) {
	n.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		n.t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// Client is the address at which clients reach the host.
func (n *Net) Client(i int) string { return fmt.Sprint("10.213.1.", i+1) }

// Peer is the host's address among the hosts.
func (n *Net) Peer(i int) string { return fmt.Sprint("10.213.2.", i+1) }

// Command is the command line that runs a program on the host.
func (n *Net) Command(i int, program string, args ...string) (path string, all []string) {
	return "ip", append([]string{"netns", "exec", n.host(i), program}, args...)
}

// CutPeers cuts the host off from the others, while clients still reach it.
func (n *Net) CutPeers(i int) { n.ip("-n", n.hub(), "link", "set", fmt.Sprint("p", i), "down") }

// Cut cuts the host off from everybody.
func (n *Net) Cut(i int) {
	n.CutPeers(i)
	n.ip("-n", n.hub(), "link", "set", fmt.Sprint("c", i), "down")
}

// Mend ends what CutPeers and Cut did.
func (n *Net) Mend(i int) {
	for _, bridge := range []string{"c", "p"} {
		n.ip("-n", n.hub(), "link", "set", fmt.Sprint(bridge, i), "up")
	}
}

// Dial connects to an address of the clients' network: a socket belongs to
// the namespace of the thread that made it.
func (n *Net) Dial(ctx context.Context, address string) (conn net.Conn, err error) {
	hub, err := os.Open("/run/netns/" + n.hub())
	if err != nil {
		return nil, err
	}
	defer hub.Close()
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	defer home.Close()
	if err := unix.Setns(int(hub.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", address)
	// The thread must live on: what it has started ends with it.
	if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
		return conn, errors.Join(err, back) // still locked, so that nobody else uses it
	}
	runtime.UnlockOSThread()
	return conn, err
}
