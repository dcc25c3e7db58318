package commands_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

// What --detect finds is named by object and kind, in every format, and never
// shown; secretsScan looks for the marker in all that gets out.
func TestSecretsScanDetectsCredentials(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, embedded.Options{})
	client := etcdtest.Client(t, c.Endpoints()...)
	token := "glpat" + "-" + "MARKERaB3dE6gH9jK2mN"
	for key, value := range map[string]string{
		"/registry/namespaces/ns":      "k8s\x00\n\x0f\n\x02v1\x12\x09Namespace",
		"/registry/configmaps/ns/app":  "k8s\x00\n\x0f\n\x02v1\x12\x09ConfigMap token: " + token + "\n",
		"/registry/pods/ns/web":        `{"kind":"Pod","apiVersion":"v1","spec":{"env":[{"name":"T","value":"` + token + `"}]}}`,
		"/registry/configmaps/ns/none": "k8s\x00\n\x0f\n\x02v1\x12\x09ConfigMap color: blue",
		"/registry/secrets/ns/sealed":  "k8s:enc:aescbc:v1:key1:" + token + "------",
	} {
		if _, err := client.Put(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	endpoint := "--endpoints=" + c.Endpoints()[0]
	metrics := filepath.Join(t.TempDir(), "secrets.prom")
	for name, tc := range map[string]struct {
		args []string
		code int
		out  string
		not  string
		err  string
	}{
		"off unless asked for":       {nil, 0, "secrets", "gitlab", ""},
		"in words":                   {[]string{"--detect"}, 0, "pods ns/web  gitlab-token  written at revision", "ns/none", ""},
		"in a table":                 {[]string{"--detect", "-w", "table"}, 0, "secrets", "ns/none", ""},
		"in JSON":                    {[]string{"--detect", "-w", "json"}, 0, `"rule":"gitlab-token"`, "ns/none", ""},
		"in YAML":                    {[]string{"--detect", "-w", "yaml"}, 0, "rule: gitlab-token", "ns/none", ""},
		"as SARIF":                   {[]string{"--detect", "-w", "sarif"}, 0, `"ruleId":"credentials"`, "ns/none", ""},
		"with debug output":          {[]string{"--detect", "--debug"}, 0, "configmaps ns/app  gitlab-token", "ns/none", ""},
		"as metrics":                 {[]string{"--detect", "--metrics-file", metrics}, 0, "gitlab-token", "ns/none", ""},
		"not wanted":                 {[]string{"--detect", "--fail-on", "credentials@live"}, 3, "gitlab-token", "ns/none", "2 found"},
		"not wanted, not looked for": {[]string{"--fail-on", "credentials"}, 2, "", "gitlab", "needs --detect"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := secretsScan(t, append(tc.args, endpoint)...)
			if code != tc.code || !strings.Contains(out, tc.out) || strings.Contains(out, tc.not) || !strings.Contains(errs, tc.err) {
				t.Errorf("exit code %d, want %d, with %q and %q, without %q;\n%s\n%s", code, tc.code, tc.out, tc.err, tc.not, out, errs)
			}
		})
	}
	written, err := os.ReadFile(metrics)
	if err != nil || !strings.Contains(string(written), `etcdkit_secrets_credentials{place="live",resource="pods",rule="gitlab-token"} 1`) || strings.Contains(string(written), "MARKER") {
		t.Errorf("%v: metrics %s", err, written)
	}
}
