package commands_test

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/etcdkit/etcdkit/commands"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/internal/testing/kmsplugin"
	"github.com/etcdkit/etcdkit/internal/testing/s3test"
	"github.com/etcdkit/etcdkit/secrets"
)

const kubeData = "../secrets/testdata/kube/"

// secretsScan runs etcdkit secrets scan and checks that no marker of a stored
// value got out.
func secretsScan(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	env := cli.System()
	var stdout, stderr strings.Builder
	env.In, env.Out, env.Err, env.Live, env.OutTTY, env.Environ = strings.NewReader(""), &stdout, &stderr, false, false, nil
	code = commands.Main(t.Context(), append([]string{"etcdkit", "secrets", "scan"}, args...), env)
	for _, marker := range []string{"MARKER", "9/lsj6P", "xeyrpkHa", "Gu0W1Aga"} {
		if strings.Contains(stdout.String()+stderr.String(), marker) {
			t.Errorf("%q got out with %q", marker, args)
		}
	}
	return code, stdout.String(), stderr.String()
}

func TestSecretsScanJudges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	mixed, err := os.ReadFile(kubeData + "mixed.db")
	if err != nil {
		t.Fatal(err)
	}
	db, config := kubeData+"mixed.db", kubeData+"encryption-config.yaml"
	identity := file("identity.yaml", "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n"+
		"resources:\n- resources: [secrets]\n  providers: [{identity: {}}]\n")
	broken := file("broken.yaml", "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n")
	for name, tc := range map[string]struct {
		args []string
		code int
		out  string
		err  string
	}{
		"in clear":                                {[]string{db}, 3, "team-a/plain-3", "14 found"},
		"against a configuration":                 {[]string{db, "--encryption-config", config, "--decrypt-check"}, 3, "20 values open, 0 do not", "17 found"},
		"in clear as configured":                  {[]string{db, "--encryption-config", identity}, 3, "plain-as-configured", "14 found"},
		"in clear as configured, and wanted":      {[]string{db, "--encryption-config", identity, "--fail-on", "plain,unknown"}, 0, "plain-as-configured", ""},
		"as SARIF, in clear as configured":        {[]string{db, "--encryption-config", identity, "-w", "sarif"}, 3, `"level":"error"`, ""},
		"no state that must not be":               {[]string{db, "--fail-on", ""}, 2, "", "--fail-on is empty"},
		"no place":                                {[]string{db, "--place", ""}, 2, "", "--place is empty"},
		"no prefix":                               {[]string{db, "--etcd-prefix", ""}, 2, "", "--etcd-prefix is empty"},
		"a prefix that is a resource":             {[]string{db, "--etcd-prefix", "/registry/secrets"}, 4, "", "there are some under /registry"},
		"a prefix with a typo beside a right one": {[]string{db, "--etcd-prefix", "/registry,/registri", "--fail-on", "unknown"}, 4, "team-a/plain-3", "under /registri"},
		"in clear as configured, not wanted":      {[]string{db, "--encryption-config", identity, "--fail-on", "plain-as-configured@live"}, 3, "", "11 found"},
		"nothing of what is not wanted":           {[]string{db, "--fail-on", "unknown"}, 0, "plain", ""},
		"only one place":                          {[]string{db, "--place", "history"}, 3, "team-a/plain-12", "3 found"},
		"free pages have none":                    {[]string{db, "--place", "free"}, 0, "lower bound", ""},
		"in JSON":                                 {[]string{db, "-w", "json"}, 3, `"etcdKey":"/registry/secrets/team-a/plain-3"`, ""},
		"with debug output":                       {[]string{db, "--debug"}, 3, "", ""},
		"a broken configuration":                  {[]string{db, "--encryption-config", broken}, 2, "", "line 4: an entry without providers"},
		"a configuration not there":               {[]string{db, "--encryption-config", dir + "/none"}, 2, "", "no such file"},
		"a check without keys":                    {[]string{db, "--decrypt-check"}, 2, "", "needs --encryption-config"},
		"as SARIF":                                {[]string{db, "-w", "sarif"}, 3, `"level":"error"`, ""},
		"a place that a file has not":             {[]string{db, "--place", "wal"}, 2, "", "only a data directory"},
		"not wanted where a file has no place":    {[]string{db, "--fail-on", "plain@wal"}, 2, "", "wal is not looked at"},
		"not wanted where nobody looks":           {[]string{"--fail-on", "plain@live,plain@history"}, 2, "", "history is not looked at"},
		"not wanted in a place left out":          {[]string{db, "--place", "live", "--fail-on", "plain@history"}, 2, "", "history is not looked at"},
		"a place that a cluster has not":          {[]string{"--place", "free"}, 2, "", "only a data directory"},
		"a rate for a file":                       {[]string{db, "--rate-limit", "1MiB"}, 2, "", "live cluster"},
		"a log for a file":                        {[]string{db, "--wal-dir", dir}, 2, "", "data directory"},
		"a metrics file that cannot be written":   {[]string{db, "--fail-on", "stale", "--metrics-file", dir + "/none/x.prom"}, 1, "team-a/plain-3", "metrics file"},
		"an unknown state":                        {[]string{db, "--fail-on", "clear"}, 2, "", "unknown state"},
		"an unknown place":                        {[]string{db, "--place", "heaven"}, 2, "", "unknown place"},
		"two sources":                             {[]string{db, db}, 2, "", "accepts at most 1 arg"},
		"a file that is not there":                {[]string{dir + "/none.db"}, 4, "", "no such file"},
		"a text file":                             {[]string{config}, 4, "", "text file"},
		"an empty file":                           {[]string{file("empty", "")}, 4, "", "empty"},
		"another prefix":                          {[]string{db, "--etcd-prefix", "/other"}, 4, "", "no Kubernetes objects found under /other"},
		"half a file":                             {[]string{file("half.db", string(mixed[:150_000])), "--fail-on", "unknown"}, 4, "", "the file is truncated"},
		"a folder that is none of etcd":           {[]string{dir}, 4, "", "member/snap"},
		"nobody listens":                          {[]string{"--endpoints", "127.0.0.1:1"}, 4, "", "127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := secretsScan(t, tc.args...)
			if code != tc.code || !strings.Contains(out, tc.out) || !strings.Contains(errs, tc.err) {
				t.Errorf("exit code %d, want %d, with %q and %q;\n%s\n%s", code, tc.code, tc.out, tc.err, out, errs)
			}
			if strings.Count(errs, "\n") > 2 || strings.Contains(errs, "goroutine") {
				t.Errorf("not one line and a hint: %s", errs)
			}
		})
	}
}

func TestSecretsScanInJSON(t *testing.T) {
	t.Parallel()
	_, out, _ := secretsScan(t, kubeData+"mixed.db", "-w", "json")
	var got secrets.Report
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	want := secrets.Finding{
		EtcdKey: "/registry/secrets/payments/regcred", Resource: "secrets", Namespace: "payments", Name: "regcred",
		Place: secrets.Live, State: secrets.Plain, Revision: 232, CreateRevision: 232, ModRevision: 232,
	}
	if got.Revision != 294 || got.Source != kubeData+"mixed.db" || len(got.Findings) != 14 || got.Findings[0] != want {
		t.Errorf("revision %d of %s, %d findings, first %+v; want %+v", got.Revision, got.Source, len(got.Findings), got.Findings[0], want)
	}
}

func TestSecretsScanWritesMetrics(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "secrets.prom")
	secretsScan(t, kubeData+"mixed.db", "--metrics-file", path)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`etcdkit_secrets_objects{key="key1",place="live",provider="aescbc",resource="secrets",state="encrypted"} 9`,
		"etcdkit_secrets_hits 14", "etcdkit_secrets_success 1", secrets.MetricLastSuccess,
	} {
		if !strings.Contains(string(good), want) {
			t.Errorf("no %s in\n%s", want, good)
		}
	}
	secretsScan(t, path, "--metrics-file", path)
	bad, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(bad), "etcdkit_secrets_success 0") || !strings.Contains(string(bad), secrets.MetricLastSuccess) {
		t.Errorf("after a failure: %v\n%s", err, bad)
	}
}

func TestSecretsScanOfBackups(t *testing.T) {
	c := etcdtest.Start(t, embedded.Options{})
	client := etcdtest.Client(t, c.Endpoints()...)
	for key, value := range map[string]string{
		"/registry/namespaces/demo": "k8s\x00x", "/registry/secrets/demo/a": "k8s\x00PLAINTEXT-MARKER", "/registry/secrets/demo/b": "k8s:enc:aescbc:v1:key1:HIDDEN-MARKER-------------------",
	} {
		if _, err := client.Put(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	key := filepath.Join(dir, "key.txt")
	if err := os.WriteFile(key, []byte(identity.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	repo, scratch := filepath.Join(dir, "repo")+"/", t.TempDir()
	env := cli.System()
	env.Out, env.Err, env.Environ = io.Discard, io.Discard, []string{"XDG_STATE_HOME=" + dir}
	server := s3test.Start(t, s3test.Options{})
	server.Setenv(t)
	bucket := "s3://" + server.Bucket(t) + "/etcd/"
	for _, target := range [][]string{{repo}, {bucket, "--s3-endpoint", server.URL, "--s3-region", s3test.Region}} {
		args := append([]string{"etcdkit", "--endpoints", c.Endpoints()[0], "snapshot", "save", "--compress", "zstd", "--encrypt-to", identity.Recipient().String()}, target...)
		if code := commands.Main(t.Context(), args, env); code != 0 {
			t.Fatalf("save to %s: exit code %d", target[0], code)
		}
	}
	files, err := filepath.Glob(repo + "*/*.age")
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, backups %v", err, files)
	}
	renamed := filepath.Join(dir, "yesterday")
	if err := os.Link(files[0], renamed); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		code int
		out  string
	}{
		"under another name":                  {[]string{renamed, "--identity", key}, 3, "secrets demo/a"},
		"the latest of a repository":          {[]string{repo, "--identity", key}, 3, "secrets demo/a"},
		"without the slash":                   {[]string{strings.TrimSuffix(repo, "/"), "--identity", key}, 3, "secrets demo/a"},
		"a file of it":                        {[]string{files[0], "--identity", key}, 3, "secrets demo/a"},
		"without the identity":                {[]string{repo}, 4, ""},
		"a bucket":                            {[]string{bucket, "--identity", key, "--s3-endpoint", server.URL, "--s3-region", s3test.Region}, 3, "secrets demo/a"},
		"a repository that is not configured": {[]string{"@none"}, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := secretsScan(t, append(tc.args, "--scratch", scratch)...)
			if code != tc.code || !strings.Contains(out, tc.out) {
				t.Errorf("exit code %d, want %d, with %q;\n%s\n%s", code, tc.code, tc.out, out, errs)
			}
		})
	}
	if left, _ := os.ReadDir(scratch); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// No output in any format, of any source, may hold a part of a value.
func TestSecretsScanShowsNoValue(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, embedded.Options{})
	client := etcdtest.Client(t, c.Endpoints()...)
	for key, value := range map[string]string{
		"/registry/namespaces/demo": "k8s\x00x", "/registry/secrets/demo/a": "k8s\x00\n\x0c\n\x02v1\x12\x06Secret\x12\x10PLAINTEXT-MARKER",
		"/registry/secrets/demo/b": "k8s:enc:aescbc:v1:key1:HIDDEN-MARKER-------------------", "/registry/secrets/demo/c": "k8s:enc:PLAINTEXT-MARKER:v1:x",
		"/registry/secrets/demo/d": "PLAINTEXT-MARKER", "/registry/secrets/demo/e": "k8s:enc:kms:v2:HIDDEN-MARKER:x", "/registry/secrets/demo/f": `{"x":"PLAINTEXT-MARKER"}`,
	} {
		if _, err := client.Put(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	for _, source := range [][]string{
		{"--endpoints", c.Endpoints()[0], "--place", "live,history"}, {c.Members[0].DataDir()}, {kubeData + "mixed.db"},
	} {
		for _, more := range [][]string{
			{"-w", "simple", "--limit", "0"},
			{"-w", "table"},
			{"-w", "json"},
			{"-w", "yaml"},
			{"-w", "sarif"},
			{"--debug"},
			{"--encryption-config", kubeData + "encryption-config.yaml", "--decrypt-check", "--debug"},
		} {
			if code, _, errs := secretsScan(t, append(source, more...)...); code != 3 {
				t.Errorf("%q %q: exit code %d\n%s", source, more, code, errs)
			}
		}
	}
}

// With its plugin's socket on this machine, KMS tells which key is the current
// one, and its values open.
func TestSecretsScanAsksTheKMSPlugin(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, embedded.Options{})
	client := etcdtest.Client(t, c.Endpoints()...)
	data, err := os.ReadFile("../internal/kube/testdata/sealed.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors map[string]struct {
		EtcdKey string
		Value   []byte
	}
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	sealed := vectors["kms v2 with a seed"]
	for key, value := range map[string]string{"/registry/namespaces/ns": "k8s\x00x", sealed.EtcdKey: string(sealed.Value)} {
		if _, err := client.Put(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		socket string
		code   int
		out    string
		err    string
	}{
		"the current key":     {kmsplugin.Start(t, kmsplugin.Options{KeyID: "key-2026"}), 0, "current  kms:v2:vault  key-2026  1", ""},
		"a rotated key":       {kmsplugin.Start(t, kmsplugin.Options{KeyID: "key-2027"}), 0, "stale  kms:v2:vault  key-2026  1", ""},
		"a plugin that fails": {kmsplugin.Start(t, kmsplugin.Options{Fail: true}), 4, "current-provider  kms:v2:vault  key-2026  1", "plugin vault"},
		"no plugin":           {"/nonexistent/socket", 4, "current-provider  kms:v2:vault  key-2026  1", "without their plugin"},
	} {
		t.Run(name, func(t *testing.T) {
			config := filepath.Join(t.TempDir(), "enc.yaml")
			text := "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n" +
				"  providers: [{kms: {name: vault, apiVersion: v2, timeout: 30s, endpoint: 'unix://" + tc.socket + "'}}]\n"
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			code, out, errs := secretsScan(t, "--endpoints", c.Endpoints()[0], "--encryption-config", config, "--decrypt-check")
			if code != tc.code || !strings.Contains(out, tc.out) || !strings.Contains(errs, tc.err) {
				t.Errorf("exit code %d, want %d, with %q and %q;\n%s\n%s", code, tc.code, tc.out, tc.err, out, errs)
			}
		})
	}
}
