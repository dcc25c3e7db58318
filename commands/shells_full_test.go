//go:build full && linux

package commands_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/internal/testing/pty"
)

// shells are how each shell is started and made to complete.
func shells() map[string]struct{ start, setup string } {
	return map[string]struct{ start, setup string }{
		"bash": {"bash --noprofile --norc -i", "source /usr/share/bash-completion/bash_completion; source $COMPLETIONS/etcdkit.bash"},
		"zsh":  {"zsh -f -i", "fpath=($COMPLETIONS $fpath); autoload -U compinit; compinit -u -D"},
		"fish": {"fish --no-config -i", "source $COMPLETIONS/etcdkit.fish"},
	}
}

// Completes in real shells, with a real cluster behind: types, presses Tab, and
// lets the shell print the words that it has then.
func TestShellsComplete(t *testing.T) {
	cluster := etcdtest.Start(t, embedded.Options{})
	repo := filepath.Join(t.TempDir(), "repo") + "/"
	environ := shellEnv(t, cluster.Endpoints()[0], repo)
	for _, args := range [][]string{{"put", "/registry/pods/a", "1"}, {"snapshot", "save", repo}} {
		code, _, stderr := run(t, append([]string{"etcdkit", "--endpoints", cluster.Endpoints()[0]}, args...)...)
		if code != 0 {
			t.Fatalf("%v: %s", args, stderr)
		}
	}
	manifests, err := filepath.Glob(repo + "*/*.json")
	if err != nil || len(manifests) != 1 {
		t.Fatalf("got %q, %v", manifests, err)
	}
	backup := strings.TrimSuffix(filepath.Base(manifests[0]), ".json")
	endpoint := cluster.Endpoints()[0]
	words := [][2]string{ // what is typed, what it becomes
		{"etcdkit snapshot sho", "etcdkit snapshot show"},
		{"etcdkit health --endpo", "etcdkit health --endpoints"},
		{"etcdkit put /reg", "etcdkit put /registry/"},
		{"etcdkit member remove m", "etcdkit member remove m1"},
		{"etcdkit --context la", "etcdkit --context lab"},
		{"etcdkit health --endpoints " + endpoint[:len(endpoint)-2], "etcdkit health --endpoints " + endpoint},
		{"etcdkit snapshot list @ma", "etcdkit snapshot list @main"},
		{"etcdkit snapshot show @main 2", "etcdkit snapshot show @main " + backup},
		{"etcdkit --endpoints 127.0.0.1:1 put /reg", "etcdkit --endpoints 127.0.0.1:1 put /reg"}, // a dead cluster offers nothing
	}
	for name, shell := range shells() {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(name); err != nil {
				t.Skipf("NOT TESTED: %s is not here", name)
			}
			argv := strings.Fields(shell.start)
			cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
			cmd.Env = environ
			term := pty.Start(t, 200, cmd)
			term.Type(shell.setup + "; printf '<%s>' ready\r")
			term.Wait("<ready>")
			for _, w := range words {
				term.Type(w[0] + "\t\x01printf '<%s>' \r") // Tab, to the line's beginning
				term.Wait("<" + strings.ReplaceAll(w[1], " ", "><") + ">")
			}
			if text := term.Text(); strings.Contains(text, "rror:") || strings.Contains(text, "panic") {
				t.Errorf("the prompt shows an error:\n%s", text)
			}
		})
	}
}

// shellEnv is an environment with etcdkit on the path, its completions, and a
// configuration file.
func shellEnv(t *testing.T, endpoint, repo string) []string {
	t.Helper()
	dir := t.TempDir()
	installed(t, dir)
	config := filepath.Join(dir, "config.yaml")
	text := "contexts: {lab: {endpoints: " + endpoint + "}}\nrepositories: {main: {url: " + repo + "}}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	completions, err := filepath.Abs("../completions")
	if err != nil {
		t.Fatal(err)
	}
	return []string{
		"PATH=" + dir + ":" + os.Getenv("PATH"), "HOME=" + dir, "TERM=xterm", "COMPLETIONS=" + completions,
		"XDG_STATE_HOME=" + dir, "ETCDKIT_CONFIG=" + config, "ETCDKIT_ENDPOINTS=" + endpoint,
	}
}
