package commands_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/kube/sample"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

// guideCommand is a command line of a guide.
type guideCommand struct {
	where  string // file and line
	line   string // without its prompt, continued lines joined
	notRun string // why it is not run, from the comment before its block
}

// guideCommands returns the command lines in a guide's code blocks, fenced or
// indented. A comment before a block keeps it from being run:
//
//	<!-- not run: a reason -->
func guideCommands(t *testing.T, path string) []guideCommand {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []guideCommand
	fence, block, notRun := "", false, "" // whether a block is open, and what its comment says
	lines := strings.Split(string(raw), "\n")
	for i := 0; i < len(lines); i++ {
		text := strings.TrimSpace(lines[i])
		indented := strings.HasPrefix(lines[i], "    ")
		switch {
		case strings.HasPrefix(text, "```"):
			if fence == "" {
				fence, block = text, true
			} else {
				fence, notRun = "", ""
			}
			continue
		case fence == "" && strings.HasPrefix(text, "<!-- not run: "):
			notRun, block = strings.TrimSuffix(strings.TrimPrefix(text, "<!-- not run: "), " -->"), false
			continue
		case fence == "" && !indented:
			if text != "" && block {
				notRun = ""
			}
			continue
		}
		block = true
		where := filepath.Base(path) + ":" + strconv.Itoa(i+1)
		for strings.HasSuffix(text, `\`) && i+1 < len(lines) {
			i++
			text = strings.TrimSuffix(text, `\`) + strings.TrimSpace(lines[i])
		}
		if line := regexp.MustCompile(`^(\$ )?(sudo )?`).ReplaceAllString(text, ""); regexp.MustCompile(`^(printf .*\| )?etcdkit `).MatchString(line) {
			all = append(all, guideCommand{where, line, notRun})
		}
	}
	return all
}

// guides are the pages whose commands are run, those that belong together on
// one cluster.
func guides() []string {
	return []string{
		"../README.md", "../docs/getting-started.md", "../docs/backups.md", "../docs/restore.md", "../docs/health.md",
		"../docs/files.md", "../docs/maintenance.md", "../docs/members.md", "../docs/disaster-recovery.md", "../docs/tls-and-auth.md", "../docs/disk.md",
		"../docs/configuration.md", "../docs/from-etcdctl.md", "../docs/json.md",
	}
}

func TestCommandsInGuidesAreCommandLines(t *testing.T) {
	t.Parallel()
	for _, page := range append(guides(), "../docs/secrets.md") {
		for _, c := range guideCommands(t, page) {
			_, line, _ := strings.Cut(c.line, "etcdkit ")
			t.Run(c.where, func(t *testing.T) { checkGuideLine(t, shellWords(line)) })
		}
	}
}

// checkGuideLine fails where words are not a command with its flags and
// arguments.
func checkGuideLine(t *testing.T, words []string) {
	t.Helper()
	root := commands.Tree("etcdkit", &cli.Env{})
	cmd, rest, err := root.Find(words)
	if err != nil {
		t.Errorf("%q: %v", words, err)
		return
	}
	if err := cmd.ParseFlags(rest); err != nil {
		t.Errorf("%q: %v", words, err)
		return
	}
	if len(words) > 0 && cmd == root || cmd.Args != nil && cobra.PositionalArgs(cmd.Args)(cmd, cmd.Flags().Args()) != nil {
		t.Errorf("%q is not a whole command line", words)
	}
}

// Runs the commands of each guide as they stand, in their order, but for places
// that are not on this machine: addresses, certificates, folders, a bucket.
func TestTheCommandsOfTheGuidesWork(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.StartServers(t, etcdtest.ServerOptions{Members: 3})
	objects, err := sample.Objects(200, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := sample.Fill(t.Context(), etcdtest.Client(t, cluster.Endpoints()...), objects); err != nil {
		t.Fatal(err)
	}
	sh := newGuideShell(t, cluster)
	for _, page := range guides() {
		t.Run(filepath.Base(page), func(t *testing.T) { sh.run(t, page) })
	}
}

func TestTheCommandsOfTheSecretsGuideWork(t *testing.T) {
	t.Parallel()
	// The guide looks into the file right after a write.
	cluster := etcdtest.StartServers(t, etcdtest.ServerOptions{Flags: []string{"--backend-batch-interval=1ms"}})
	sh := newGuideShell(t, cluster)
	backup, err := os.ReadFile("../snapshot/testdata/kubernetes.db") // the cluster's own has no objects
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(sh.dir, "backup.db"), backup, 0o600); err != nil {
		t.Fatal(err)
	}
	sh.run(t, "../docs/secrets.md")
}

// guideShell is where the commands of guides run.
type guideShell struct {
	dir, recipient string
	env            []string
	restores       int
}

func newGuideShell(t *testing.T, cluster *etcdtest.Servers) *guideShell {
	t.Helper()
	dir := t.TempDir()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	installed(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "key.txt"), []byte(identity.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	keyFiles(t, dir, "etcd")
	sh := &guideShell{dir: dir, recipient: identity.Recipient().String(), env: []string{
		"PATH=" + dir + ":" + os.Getenv("PATH"), "HOME=" + dir, "XDG_STATE_HOME=" + dir, "DIR=" + cluster.Members[0].DataDir,
		"ETCDKIT_ENDPOINTS=" + strings.Join(cluster.Endpoints(), ","),
		"ETCDKIT_COMMAND_TIMEOUT=1m", // for a loaded machine
	}}
	for _, line := range []string{ // what guides take for granted
		"etcdkit snapshot save backup.db",
		"etcdkit snapshot restore backup.db --data-dir m1 --name m1",
	} {
		if code, out := sh.sh(t, line); code != 0 {
			t.Fatalf("%s: exit code %d\n%s", line, code, out)
		}
	}
	return sh
}

func (sh *guideShell) run(t *testing.T, page string) {
	t.Helper()
	for _, c := range guideCommands(t, page) {
		if c.notRun != "" {
			t.Logf("%s: not run: %s", c.where, c.notRun)
			continue
		}
		line := sh.here(c.line)
		code, out := sh.sh(t, line)
		if !slices.Contains(allowed(line), code) {
			t.Errorf("%s: %s: exit code %d\n%s", c.where, line, code, out)
		}
	}
}

// allowed returns the exit codes that a command may end with: those that judge
// may be right about this machine.
func allowed(line string) []int {
	for _, judging := range []string{"etcdkit health", "etcdkit secrets scan", "etcdkit disk check"} {
		if strings.Contains(line, judging) {
			return []int{0, 3}
		}
	}
	return []int{0}
}

// here puts what is on this machine into a line.
func (sh *guideShell) here(line string) string {
	sh.restores++
	fresh := "--data-dir restored-" + strconv.Itoa(sh.restores)
	line = regexp.MustCompile(`--data-dir \S+`).ReplaceAllString(line, fresh)
	line = regexp.MustCompile(` --(endpoints|cacert|cert|key) \S+`).ReplaceAllString(line, "")
	line = regexp.MustCompile(`(/mnt/m\d\S*/etcd( |$))+`).ReplaceAllString(line, "m1 ")
	return strings.NewReplacer(
		"s3://", "bucket/", "/var/backups/", "folder/", "/var/lib/etcd", "m1", "/root/", "", "/etc/etcdkit/sign.key", "etcd.key", "age1...", sh.recipient,
		"SOURCE", "backup.db",
	).Replace(line)
}

func (sh *guideShell) sh(t *testing.T, line string) (code int, out string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", "exec 2>&1; "+line)
	cmd.WaitDelay = time.Second
	cmd.Dir, cmd.Env = sh.dir, sh.env
	b, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), string(b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0, string(b)
}
