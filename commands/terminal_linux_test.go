package commands_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/internal/testing/pty"
)

// Runs what people look at most on real terminals of several widths.
func TestTablesFitRealTerminals(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, embedded.Options{Members: 3})
	endpoints := strings.Join(cluster.Endpoints(), ",")
	repo, file := filepath.Join(t.TempDir(), "repo")+"/", filepath.Join(t.TempDir(), "b.db")
	for _, args := range [][]string{
		{"put", "/registry/apiextensions.k8s.io/customresourcedefinitions/a", "1"},
		{"snapshot", "save", repo},
		{"snapshot", "save", file},
	} {
		if code, _, stderr := run(t, append([]string{"etcdkit", "--endpoints", endpoints}, args...)...); code != 0 {
			t.Fatalf("%v: %s", args, stderr)
		}
	}
	for name, tc := range map[string]struct {
		args         string
		narrow, wide string // what shows the form at 80 columns, and at 200
	}{
		"health":               {"health --sample 0 --max-latency 1m", "\nendpoint:   http", "\nMEMBER  ENDPOINT "},
		"snapshot list":        {"snapshot list " + repo, "\nname:     20", "\nNAME  "},
		"member list -w table": {"member list -w table", "\nname:         m1\n", "│       PEER ADDRS       │"},
		"db du":                {"db du --depth 3 " + file, "customresourcedefinitions/\n          ", "customresourcedefinitions/  1 "},
	} {
		t.Run(name, func(t *testing.T) {
			for columns, want := range map[int]string{60: "", 80: tc.narrow, 200: tc.wide} {
				got := onTerminal(t, columns, program(t, "etcdkit", endpoints, tc.args))
				if !strings.Contains(got, want) {
					t.Errorf("%d columns: no %q in\n%s", columns, want, got)
				}
				for line := range strings.Lines(got) {
					if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); columns >= 80 && n > columns {
						t.Errorf("%d columns: a line of %d: %s", columns, n, line)
					}
				}
			}
			piped, err := program(t, "etcdkit", endpoints, tc.args).Output()
			if err != nil || !strings.Contains("\n"+string(piped), tc.wide) {
				t.Errorf("piped: %v, want %q in\n%s", err, tc.wide, piped)
			}
		})
	}
}

func TestUpstreamsTablesStayAsTheyAre(t *testing.T) {
	t.Parallel()
	endpoint := etcdtest.Start(t, embedded.Options{}).Endpoints()[0]
	narrow := onTerminal(t, 60, program(t, "etcdctl", endpoint, "member list -w table"))
	piped, err := program(t, "etcdctl", endpoint, "member list -w table").Output()
	if err != nil || narrow != "\n"+string(piped) {
		t.Errorf("got %v and on a terminal\n%s\npiped\n%s", err, narrow, piped)
	}
}

func TestAPasswordOnATerminalCanBeLeft(t *testing.T) {
	t.Parallel()
	endpoint := etcdtest.Start(t, embedded.Options{}).Endpoints()[0]
	for name, tc := range map[string]struct {
		program, keys string
		code          int
	}{
		"Ctrl-C":           {"etcdkit", "\x03", 130},
		"Ctrl-D":           {"etcdkit", "\x04", 2},
		"etcdctl's Ctrl-C": {"etcdctl", "\x03", 255},
		"etcdctl's Ctrl-D": {"etcdctl", "\x04", 128},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := program(t, tc.program, endpoint, "user add alice")
			term := pty.Start(t, 80, cmd)
			term.Wait("Password of alice: ")
			term.Type(tc.keys)
			term.End()
			_ = cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != tc.code {
				t.Errorf("exit code %d, want %d:\n%s", got, tc.code, term.Text())
			}
		})
	}
}

// program returns a command line of one of the programs, as a process.
func program(t *testing.T, name, endpoints, line string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, strings.Fields(line)...)
	cmd.Args[0] = name
	home := t.TempDir()
	cmd.Env = []string{"HOME=" + home, "XDG_STATE_HOME=" + home, "TERM=xterm", strings.ToUpper(name) + "_ENDPOINTS=" + endpoints}
	return cmd
}

// onTerminal returns what a program shows on a terminal, after a newline.
func onTerminal(t *testing.T, columns int, cmd *exec.Cmd) string {
	t.Helper()
	term := pty.Start(t, columns, cmd)
	text := term.End()
	if strings.Contains(strings.ReplaceAll(term.Raw(), "\x1b[K", ""), "\x1b[3") { // progress may clear its line
		t.Errorf("colours in %q", term.Raw())
	}
	return "\n" + text
}
