package commands_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// etcd-io/etcd#6405: a password on the command line can be read from the
// process list by every user of the machine.
func TestProcessListShowsNoPassword(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, exe, "playground", "--user=root:hunter2", "--password", "swordfish")
	cmd.Args[0] = "etcdkit"
	cmd.Env = []string{"HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir()}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() }()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		list := string(bytes.ReplaceAll(b, []byte{0}, []byte{' '}))
		if strings.Contains(list, "--user=root:xxxxxxx --password xxxxxxxxx") {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the process list shows %q", list)
		}
	}
}
