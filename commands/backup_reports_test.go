package commands_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/commands"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

// etcd-io/etcd#16242: - is a pipe, and no terminal.
func TestASnapshotGoesToAPipeAndToNoTerminal(t *testing.T) {
	cluster := etcdtest.Start(t, embedded.Options{})
	t.Chdir(t.TempDir())
	for terminal, want := range map[bool]int{false: 0, true: 2} {
		var out, errs bytes.Buffer
		env := &cli.Env{
			In: strings.NewReader(""), Out: &out, Err: &errs, Now: time.Now, OutTTY: terminal,
			Environ: []string{"HOME=" + t.TempDir(), "XDG_STATE_HOME=" + t.TempDir()},
		}
		code := commands.Main(t.Context(), []string{"etcdkit", "snapshot", "save", "-", "--endpoints", cluster.Endpoints()[0]}, env)
		if code != want || out.Len() > 0 == terminal {
			t.Errorf("terminal %t: exit code %d, %d bytes; %s", terminal, code, out.Len(), errs.String())
		}
		if !terminal && out.Len()%512 != 32 {
			t.Errorf("%d bytes are no snapshot with its SHA-256, and nothing else", out.Len())
		}
	}
	if left, err := os.ReadDir("."); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v; want no file called -", left, err)
	}
}

// rancher/rke2#3110: nobody notices backups that fail for weeks.
func TestFailingBackupsAreNoticed(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, embedded.Options{})
	dir := t.TempDir()
	repo, metrics := filepath.Join(dir, "repo")+"/", filepath.Join(dir, "backup.prom")
	values := func() map[string]string {
		t.Helper()
		raw, err := os.ReadFile(metrics)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, m := range regexp.MustCompile(`(?m)^etcdkit_backup_(\w+) (\S+)$`).FindAllStringSubmatch(string(raw), -1) {
			all[m[1]] = m[2]
		}
		return all
	}
	save := func(endpoint string) int {
		t.Helper()
		code, _, _ := run(t, "etcdkit", "snapshot", "save", repo, "--endpoints", endpoint, "--metrics-file", metrics)
		return code
	}
	age := func(limit string) int {
		t.Helper()
		code, _, _ := run(t, "etcdkit", "snapshot", "age", repo, "--max", limit, "--metrics-file", filepath.Join(dir, "age.prom"))
		return code
	}
	if code := age("1h"); code != 4 {
		t.Errorf("age where the folder is not there, as an unmounted one: exit code %d, want 4", code)
	}
	if err := os.Mkdir(repo, 0o700); err != nil {
		t.Fatal(err)
	}
	if code := age("1h"); code != 3 {
		t.Errorf("age without a backup: exit code %d, want 3", code)
	}
	if code := save(cluster.Endpoints()[0]); code != 0 {
		t.Fatalf("save: exit code %d", code)
	}
	good := values()
	if good["success"] != "1" || good["last_success_timestamp_seconds"] == "" || good["size_bytes"] == "" || good["revision"] != "1" {
		t.Errorf("after a success: %v", good)
	}
	if code := save("127.0.0.1:1"); code != 1 {
		t.Errorf("save of a dead member: exit code %d, want 1", code)
	}
	bad := values()
	if bad["success"] != "0" || bad["last_success_timestamp_seconds"] != good["last_success_timestamp_seconds"] || bad["size_bytes"] != good["size_bytes"] {
		t.Errorf("after a failure: %v; want the last success of %v kept", bad, good)
	}
	if young, old := age("1h"), age("1ns"); young != 0 || old != 3 {
		t.Errorf("age of a young one: exit code %d, of one too old: %d; want 0 and 3", young, old)
	}
	if info, err := os.Stat(metrics); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the metrics: %v, %v; want them readable for the collector", info.Mode(), err)
	}
}
