package commands_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

// What a plan prints is run later, on other machines: it names the backup that
// latest was, all numbers, and how to decrypt it, and not the proxy's password.
func TestAPlanMeansTheSameEverywhere(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, embedded.Options{})
	if _, err := etcdtest.Client(t, c.Endpoints()...).Put(t.Context(), "/registry/configmaps/ns/c", "k8s\x00\n\x0f\n\x02v1\x12\tConfigMap"); err != nil {
		t.Fatal(err)
	}
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	key, plain, repo := filepath.Join(dir, "key.txt"), filepath.Join(dir, "plain.db"), filepath.Join(dir, "repo")
	if err := os.WriteFile(key, []byte(identity.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	save := func(target string, flags ...string) {
		t.Helper()
		args := append([]string{"--endpoints", c.Endpoints()[0], "snapshot", "save", target}, flags...)
		if code, _, errs := kit(t, args...); code != 0 {
			t.Fatalf("save to %s: exit code %d\n%s", target, code, errs)
		}
	}
	save(plain)
	save(repo+"/", "--compress", "zstd", "--encrypt-to", identity.Recipient().String())
	flags := []string{"--identity", key, "--s3-proxy", "http://user:secret@127.0.0.1:1", "--s3-region", "here"}
	name := regexp.QuoteMeta(repo) + `/[0-9a-f]{16}/\d{8}T\d{6}Z-[0-9a-f]{16}-[0-9a-f]{8}`
	for what, tc := range map[string]struct{ source, want string }{
		"a file":       {plain, regexp.QuoteMeta(plain)},
		"a repository": {repo, name},
		"its latest":   {repo + "/latest", name},
	} {
		t.Run(what, func(t *testing.T) {
			target := filepath.Join(t.TempDir(), "d")
			code, out, errs := kit(t, append([]string{"snapshot", "restore", tc.source, "--plan", "--data-dir", target}, flags...)...)
			lines := regexp.MustCompile(`^# on default\netcdkit snapshot restore (` + tc.want + `) .* --bump-revision 1000000000 --mark-compacted ` +
				`--identity=` + regexp.QuoteMeta(key) + ` --s3-region=here\netcd `)
			if code != 0 || !lines.MatchString(out) {
				t.Fatalf("exit code %d, want commands like %s:\n%s%s", code, lines, out, errs)
			}
			args := strings.Fields(strings.Split(out, "\n")[1])[1:]
			save(repo+"/", "--compress", "zstd") // another latest, which the plan must not mean
			if code, _, errs := kit(t, args...); code != 0 {
				t.Errorf("%s: exit code %d\n%s", args, code, errs)
			}
		})
	}
}
