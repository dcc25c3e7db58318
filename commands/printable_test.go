package commands_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/etcdkit/etcdkit/commands"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

// hostileText sets a terminal's title, clears it, turns text around
// and begins a line of its own.
const hostileText = "h\x1b]0;owned\a\x1b[2J\u009b2J\u202e\nHEALTHY\r"

// Whatever has a name from outside is shown so that no terminal takes it for
// commands, on a terminal and in a file that is looked at later.
func TestTextFromOutsideIsMadePrintable(t *testing.T) {
	c := etcdtest.Start(t, embedded.Options{Members: 1, Configure: func(_ int, cfg *embed.Config) { cfg.Name = hostileText }})
	client := etcdtest.Client(t, c.Endpoints()...)
	s := &session{t: t, endpoint: c.Endpoints()[0], client: client}
	s.put("/registry/secrets/"+hostileText+"/"+hostileText, "v"+hostileText)
	if _, err := client.RoleAdd(t.Context(), hostileText); err != nil {
		t.Fatal(err)
	}
	if _, err := client.UserAdd(t.Context(), hostileText, "p"); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	repo, file := filepath.Join(dir, "repo")+"/", filepath.Join(dir, "snap.db")
	for _, target := range []string{repo, file} {
		if got := s.run("snapshot", "save", target); got.code != 0 {
			t.Fatal(got)
		}
	}
	manifests, err := filepath.Glob(filepath.Join(repo, "*", "*.json"))
	if err != nil || len(manifests) != 1 {
		t.Fatalf("%v, %v", manifests, err)
	}
	defaceManifest(t, manifests[0])
	absent := filepath.Join(dir, hostileText)

	for _, line := range [][]string{
		{"health"},
		{"health", "--strict"},
		{"member", "list"},
		{"endpoint", "status"},
		{"endpoint", "health"},
		{"endpoint", "hashkv"},
		{"check", "consistency"},
		{"defrag-all", "--dry-run", "--all"},
		{"alarm", "recover", "--dry-run"},
		{"role", "list"},
		{"user", "list"},
		{"role", "get", hostileText},
		{"user", "get", hostileText},
		{"snapshot", "save", filepath.Join(dir, "second.db")},
		{"snapshot", "list", repo},
		{"snapshot", "show", repo},
		{"snapshot", "verify", repo},
		{"snapshot", "age", repo},
		{"snapshot", "prune", repo, "--keep-last", "1", "--dry-run"},
		{"snapshot", "status", file},
		{"snapshot", "restore", file, "--data-dir", filepath.Join(dir, "restored")},
		{"db", "info", file},
		{"db", "keys", file},
		{"db", "du", file},
		{"secrets", "scan", file},
		{"secrets", "scan"},
		// what is only named in an error
		{"snapshot", "list", absent + "/"},
		{"db", "info", absent},
		{"get", "a", "--context", hostileText},
		{"snapshot", "list", "@" + hostileText},
		{"get", "a", "--endpoints", "http://" + hostileText},
		{hostileText},
		{"get", "--" + hostileText},
		{"member", "remove", hostileText},
		{"del", "--prefix", "/registry"},
		{"move-leader", hostileText},
		{"disk", "check", absent},
		{"lease", "revoke", hostileText},
	} {
		for _, terminal := range []bool{false, true} {
			format := map[bool]string{false: "simple", true: "table"}[terminal]
			got := s.show(terminal, append(line, "-w", format)...)
			if bad := unprintable(got.out + got.err); bad != "" {
				t.Errorf("%q, terminal %v, %s: %q reaches the reader in\n%q\n%q", line, terminal, format, bad, got.out, got.err)
			}
		}
	}
	// On a terminal keys and values are made printable too, and JSON stays JSON.
	// For a pipe they are exact.
	get := []string{"get", "--prefix", "/registry"}
	if got := s.show(true, get...); unprintable(strings.ReplaceAll(got.out, "\n", "")) != "" || !strings.Contains(got.out, `\x1b]0;owned`) {
		t.Errorf("get on a terminal: %q", got.out)
	}
	if got := s.show(true, "member", "list", "-w", "json"); unprintable(got.out) != "" || !json.Valid([]byte(got.out)) {
		t.Errorf("JSON on a terminal: %q", got.out)
	}
	if got := s.show(false, get...); !strings.Contains(got.out, "v"+hostileText+"\n") {
		t.Errorf("get into a pipe: %q", got.out)
	}
}

// defaceManifest puts the hostileText name wherever a manifest has text.
func defaceManifest(t *testing.T, path string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"memberName", "endpoint", "etcdVersion", "storageVersion", "toolVersion"} {
		m[key] = hostileText
	}
	m["labels"] = map[string]string{hostileText: hostileText}
	m["writer"] = map[string]string{"host": hostileText, "run": hostileText}
	if raw, err = json.Marshal(m); err == nil {
		err = os.WriteFile(path, raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// show runs a command line, perhaps on a terminal.
func (s *session) show(terminal bool, args ...string) outcome {
	s.t.Helper()
	var out, errs lockedBuffer
	env := &cli.Env{
		In: strings.NewReader(""), Out: &out, Err: &errs, Now: time.Now, OutTTY: terminal,
		Environ: []string{"HOME=" + s.t.TempDir(), "PATH=" + os.Getenv("PATH"), "ETCDCTL_ENDPOINTS=" + s.endpoint, "NO_COLOR=1"},
	}
	code := commands.Main(s.t.Context(), append([]string{"etcdkit"}, args...), env)
	return outcome{code, out.String(), errs.String()}
}

// unprintable returns the first thing in text that a terminal could take for a
// command, or that pretends to be a verdict.
func unprintable(text string) string {
	if !utf8.ValidString(text) {
		return "bytes that are not UTF-8"
	}
	for _, line := range strings.Split(text, "\n") {
		if line == "HEALTHY\\x0d" || line == "HEALTHY" {
			return line
		}
	}
	for _, r := range text {
		if r != '\n' && r != '\t' && (r < 0x20 || r >= 0x7f && r < 0xa0 || r == '\u202e') {
			return string(r)
		}
	}
	return ""
}
