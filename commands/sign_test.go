package commands_test

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"aead.dev/minisign"
)

// keyFiles writes a pair of minisign keys into a folder: NAME.key and NAME.pub. It
// returns the public key as one line.
func keyFiles(t *testing.T, dir, name string) string {
	t.Helper()
	public, private, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := private.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	text, err := public.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	for ending, content := range map[string][]byte{".key": secret, ".pub": text} {
		if err := os.WriteFile(filepath.Join(dir, name+ending), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return public.String()
}

// A manifest that is right about the bytes, and of another cluster, is refused by
// restore and verify.
func TestAFileOfAnotherClusterIsRefused(t *testing.T) {
	t.Parallel()
	s, dir := newSession(t), t.TempDir()
	file := filepath.Join(dir, "backup.db")
	if got := s.run("snapshot", "save", file); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	raw, err := os.ReadFile(file + ".json")
	if err != nil {
		t.Fatal(err)
	}
	changed := regexp.MustCompile(`"memberID": "[0-9a-f]+"`).ReplaceAll(raw, []byte(`"memberID": "00000000000000ff"`))
	if err := os.WriteFile(file+".json", changed, 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "m1")
	for _, tc := range []struct {
		args []string
		code int
	}{{[]string{"verify", file}, 3}, {[]string{"restore", file, "--data-dir", data}, 1}} {
		got := s.run(append([]string{"snapshot"}, tc.args...)...)
		if got.code != tc.code || !strings.Contains(got.out+got.err, "member 00000000000000ff") {
			t.Errorf("%q: %+v", tc.args, got)
		}
	}
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("the refused restore left %s: %v", data, err)
	}
}

// From the flags and the configuration to each command that has to refuse.
func TestBackupsAreSignedAndTrusted(t *testing.T) {
	t.Parallel()
	s, dir := newSession(t), t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	ours, other := keyFiles(t, dir, "ours"), keyFiles(t, dir, "other")
	repo, file := in("repo")+"/", in("backup.db")
	config := "repositories:\n  main:\n    url: " + repo + "\n    signWith: " + in("ours.key") + "\n    trust: [" + ours + "]\n"
	if err := os.WriteFile(in("config.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	newData := func() string { return filepath.Join(t.TempDir(), "m1") }
	for _, tc := range []struct {
		args string
		code int
		says string
	}{
		{"snapshot save @main", 0, ""},
		{"snapshot save " + file + " --sign-with " + in("ours.key"), 0, ""},
		{"snapshot verify @main", 0, ""},
		{"snapshot verify " + repo + " --trust " + ours, 0, "no record is left"},
		{"snapshot verify " + repo + " --trust " + other, 4, "is signed by key"},
		{"snapshot verify " + file + " --trust " + in("ours.pub"), 0, ""},
		{"snapshot verify " + file + " --trust " + in("other.pub"), 3, ""},
		{"snapshot list @main", 0, ""},
		{"snapshot age @main --max 1h --verified-max 1h", 0, ""},
		{"snapshot age " + repo + " --max 1h --trust " + other, 3, "does not count"},
		{"snapshot show " + repo + " --trust " + other, 1, "not signed by a trusted key"},
		{"snapshot prune @main --keep-last 1", 0, ""},
		{"snapshot copy @main " + in("copy") + "/", 0, ""},
		{"snapshot age " + in("copy") + "/ --max 1h --trust " + ours, 0, ""},
		{"snapshot restore @main/latest --data-dir " + newData(), 0, ""},
		{"snapshot restore " + repo + "latest --trust " + other + " --data-dir " + newData(), 1, "not signed by a trusted key"},
		{"snapshot restore " + file + " --trust " + ours + " --data-dir " + newData(), 0, ""},
		{"snapshot restore " + file + " --trust " + other + " --data-dir " + newData(), 1, "not signed by a trusted key"},
		{"snapshot restore " + in("copy") + "/latest --plan --name m1 --trust " + ours + " --data-dir " + newData(), 0, ""},
		{"secrets scan " + file + " --trust " + ours, 4, "no Kubernetes objects"},
		{"secrets scan " + file + " --trust " + other, 4, "not signed by a trusted key"},
		// A new backup takes the signature of the old one away.
		{"snapshot save " + file, 0, ""},
		{"snapshot restore " + file + " --trust " + ours + " --data-dir " + newData(), 1, "has no signature"},
		{"snapshot save @main --sign-with " + in("other.key"), 2, "--trust does not name the key of --sign-with"},
		{"snapshot save " + repo + " --trust " + ours, 2, "--trust needs --sign-with"},
		{"snapshot save - --sign-with " + in("ours.key"), 2, "a pipe gets none"},
		{"snapshot save " + repo + " --sign-with " + in("ours.pub"), 2, "no secret key of minisign"},
		{"snapshot save " + repo + " --sign-with " + in("none"), 2, "no such file"},
		{"snapshot list " + repo + " --trust " + in("none"), 2, "a public key begins with RW"},
		{"snapshot list " + repo + " --trust " + in("ours.key"), 2, "no public key of minisign"},
	} {
		args := append(strings.Fields(tc.args), "--config", in("config.yaml"))
		got := s.run(args...)
		if got.code != tc.code || !strings.Contains(got.err, tc.says) {
			t.Errorf("%s: %+v; want %d with %q", tc.args, got, tc.code, tc.says)
		}
		if strings.Contains(tc.args, "--plan") && !strings.Contains(got.out, "--trust="+ours) {
			t.Errorf("the plan leaves out whose signature counts: %s", got.out)
		}
	}
}
