package commands_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/kube/sample"
	"github.com/etcdkit/etcdkit/internal/testing/certs"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

// The main job on a cluster that asks for a client certificate and a password.
func TestTheMainJobWithCertificatesAndAPassword(t *testing.T) {
	ca := certs.NewCA(t)
	pair := ca.Client(t, "nobody")
	cluster := etcdtest.StartServers(t, etcdtest.ServerOptions{CA: ca, ClientCerts: true})
	client := etcdtest.ClientTLS(t, ca, []certs.Pair{pair}, cluster.Endpoints()...)
	objects, err := sample.Objects(300, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := sample.Fill(t.Context(), client, objects); err != nil {
		t.Fatal(err)
	}
	etcdtest.EnableAuth(t, client, "hunter2")
	dir := t.TempDir()
	password := filepath.Join(dir, "password")
	if err := os.WriteFile(password, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, repo := filepath.Join(dir, "backup.db"), filepath.Join(dir, "repo")+"/"
	connect := []string{
		"--endpoints", cluster.Endpoints()[0], "--cacert", ca.File, "--cert", pair.CertFile, "--key", pair.KeyFile,
		"--user", "root", "--password-file", password, "--command-timeout", "1m",
	}
	for _, step := range [][]string{
		{"put", "greeting", "hello"},
		{"get", "greeting"},
		{"member", "list"},
		{"endpoint", "health"},
		{"endpoint", "status"},
		{"alarm", "list"},
		{"health"},
		{"snapshot", "save", file},
		{"snapshot", "save", repo},
		{"snapshot", "list", repo},
		{"snapshot", "status", file},
		{"snapshot", "verify", repo},
		{"snapshot", "restore", file, "--data-dir", filepath.Join(dir, "m1")},
		{"snapshot", "restore", repo, "--data-dir", filepath.Join(dir, "m2")},
		{"secrets", "scan", "--fail-on", "unknown"},
		{"defrag-all", "--all"},
		{"del", "greeting"},
	} {
		code, stdout, stderr := run(t, append(append([]string{"etcdkit"}, step...), connect...)...)
		if code != 0 {
			t.Errorf("%s: exit code %d\n%s%s", strings.Join(step, " "), code, stdout, stderr)
		}
		if strings.Contains(stdout+stderr, "hunter2") {
			t.Errorf("%s shows the password", strings.Join(step, " "))
		}
	}
}

func TestAWrongPasswordIsNamed(t *testing.T) {
	cluster := etcdtest.Start(t, embedded.Options{})
	etcdtest.EnableAuth(t, etcdtest.Client(t, cluster.Endpoints()...), "right")
	target := filepath.Join(t.TempDir(), "backup.db")
	for _, step := range [][]string{{"get", "a"}, {"snapshot", "save", target}} {
		code, _, stderr := run(t, append(append([]string{"etcdkit"}, step...), "--endpoints", cluster.Endpoints()[0], "--user", "root:wrong")...)
		if code != 1 || !strings.Contains(stderr, "authentication failed") || !strings.Contains(stderr, "hint: check --user") || strings.Contains(stderr, "wrong") {
			t.Errorf("%v: exit code %d\n%s", step, code, stderr)
		}
	}
	if _, err := os.Stat(target); !os.IsNotExist(err) {
		t.Errorf("stat of the target: %v, want nothing left", err)
	}
}
