package secrets_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/kube"
	"github.com/etcdkit/etcdkit/secrets"
)

// sealedConfig is the configuration that the values in package kube's
// sealed.json were made with; KMS v2 writes Secrets when it comes first.
func sealedConfig(t *testing.T, kmsFirst bool) *kube.EncryptionConfig {
	t.Helper()
	data, err := os.ReadFile("../internal/kube/testdata/seal/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const kms = "- resources: [secrets]\n  providers:\n  - kms: {name: vault, apiVersion: v2, endpoint: unix:///x}\n"
	text := string(data) + kms
	if kmsFirst {
		text = strings.Replace(string(data), "resources:\n", "resources:\n"+kms, 1)
	}
	c, err := kube.ParseEncryptionConfig([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// putSealed writes values that the API server's own transformers made.
func (c *cluster) putSealed() {
	c.t.Helper()
	data, err := os.ReadFile("../internal/kube/testdata/sealed.json")
	if err != nil {
		c.t.Fatal(err)
	}
	var vectors map[string]struct {
		EtcdKey string
		Value   []byte
	}
	if err := json.Unmarshal(data, &vectors); err != nil {
		c.t.Fatal(err)
	}
	for _, v := range vectors {
		c.put(v.EtcdKey, string(v.Value))
	}
}

func (c *cluster) scanWith(opts secrets.Options) *secrets.Report {
	c.t.Helper()
	r, err := secrets.ScanCluster(c.t.Context(), c.client, secrets.ClusterOptions{Options: opts, Timeout: time.Minute})
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

func TestStatesOfWhatTheAPIServerSealed(t *testing.T) {
	c := newCluster(t)
	c.putSealed()
	c.put("/registry/secrets/ns/json", `{"kind":"Secret","data":"PLAINTEXT-MARKER"}`)
	c.put("/registry/secrets/ns/cbor", "\xd9\xd9\xf7\xa1PLAINTEXT-MARKER")
	c.put("/registry/secrets/ns/odd", "PLAINTEXT-MARKER")
	const others = `configmaps live plain 1
configmaps live current aesgcm gcm 1
deployments.apps live current secretbox box 1
`
	for name, tc := range map[string]struct {
		opts secrets.Options
		want string
	}{
		"without a configuration": {secrets.Options{}, `secrets live plain 2
secrets live unknown 1
secrets live encrypted aescbc cbc-new 1
secrets live encrypted kms:v1:vault 2
secrets live encrypted kms:v2:vault key-2026 2
`},
		"aescbc first": {secrets.Options{Config: sealedConfig(t, false)}, others + `secrets live plain 2
secrets live unknown 1
secrets live stale kms:v1:vault 2
secrets live stale kms:v2:vault key-2026 2
secrets live current aescbc cbc-new 1
`},
		"kms first, its key not known": {secrets.Options{Config: sealedConfig(t, true)}, others + `secrets live plain 2
secrets live unknown 1
secrets live stale aescbc cbc-new 1
secrets live stale kms:v1:vault 2
secrets live current-provider kms:v2:vault key-2026 2
`},
		"kms first, its key current": {
			secrets.Options{Config: sealedConfig(t, true), CurrentKeys: map[string]string{"kms:v2:vault": "key-2026"}},
			others + `secrets live plain 2
secrets live unknown 1
secrets live stale aescbc cbc-new 1
secrets live stale kms:v1:vault 2
secrets live current kms:v2:vault key-2026 2
`,
		},
		"kms first, its key rotated": {
			secrets.Options{Config: sealedConfig(t, true), CurrentKeys: map[string]string{"kms:v2:vault": "key-2027"}},
			others + `secrets live plain 2
secrets live unknown 1
secrets live stale aescbc cbc-new 1
secrets live stale kms:v1:vault 2
secrets live stale kms:v2:vault key-2026 2
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := summary(c.scanWith(tc.opts), secrets.Live); got != tc.want {
				t.Errorf("got\n%swant\n%s", got, tc.want)
			}
		})
	}
}

func TestDecryptCheckNamesWhatDoesNotOpen(t *testing.T) {
	c := newCluster(t)
	c.putSealed()
	c.put("/registry/secrets/ns/broken", "k8s:enc:aescbc:v1:cbc-new:"+strings.Repeat("x", 48))
	c.put("/registry/secrets/ns/lost", "k8s:enc:aescbc:v1:gone:"+strings.Repeat("x", 48))
	config := sealedConfig(t, false)
	r := c.scanWith(secrets.Options{Config: config, Opener: kube.NewOpener(config, nil)})
	var got []string
	for _, u := range r.Unopened {
		got = append(got, fmt.Sprintf("%s %v", u.EtcdKey, u.CannotTell))
	}
	want := []string{
		"/registry/secrets/ns/broken false", "/registry/secrets/ns/kms1 false", "/registry/secrets/ns/kms1cbc false",
		"/registry/secrets/ns/kms2 true", "/registry/secrets/ns/kms2key true", "/registry/secrets/ns/lost false",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || r.Opened != 3 {
		t.Errorf("%d opened, not opened\n%s\nwant 3 and\n%s", r.Opened, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// kubernetes/kubernetes#98877 and kubernetes-sigs/kind#3726:
// encryption is set up, but identity comes first, or old objects were not
// rewritten.
func TestPlainStaysThoughEncryptionIsSetUp(t *testing.T) {
	c := newCluster(t)
	c.put("/registry/secrets/ns/old", inClear)
	for name, tc := range map[string]struct {
		first string
		want  string
		hits  int
	}{
		"not rewritten":  {"", "secrets live plain 1\n", 1},
		"identity first": {"identity: {}\n  - ", "secrets live plain-as-configured 1\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := kube.ParseEncryptionConfig([]byte("apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n" +
				"- resources: [secrets]\n  providers:\n  - " + tc.first + "aescbc: {keys: [{name: k, secret: AAECAwQFBgcICQoLDA0ODw==}]}\n"))
			if err != nil {
				t.Fatal(err)
			}
			r := c.scanWith(secrets.Options{Config: config})
			if got := summary(r, secrets.Live); got != tc.want || secrets.DefaultFailOn().Hits(r) != tc.hits {
				t.Errorf("%d hits, got\n%swant %d and\n%s", secrets.DefaultFailOn().Hits(r), got, tc.hits, tc.want)
			}
			if len(r.Next) == 0 || len(r.Findings) != 1 || r.Findings[0].Name != "old" {
				t.Errorf("findings %v, next %v", r.Findings, r.Next)
			}
		})
	}
}

// kubernetes/enhancements#3486 and kubernetes/kubernetes#111922: which
// keys are still in use, before one is removed?
func TestKeysInUseAreListed(t *testing.T) {
	r, err := secrets.ScanFile(t.Context(), mixed(t), secrets.Options{Config: sealedConfig(t, false)})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, k := range r.Keys {
		got = append(got, fmt.Sprintf("%s %s configured=%v live=%d", k.Provider, k.Key, k.Configured, k.Counts[secrets.Live]))
	}
	want := []string{
		"aescbc cbc-new configured=true live=0", "aescbc cbc-old configured=true live=0", "aesgcm gcm configured=true live=0",
		"secretbox box configured=true live=0", "secretbox sb-2026 configured=false live=6", "aescbc key1 configured=false live=9",
		"aesgcm gcm-prod configured=false live=4",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// aquasecurity/kube-hunter#46 and lfn-cnti/testsuite#1971: what the
// flags say does not matter, the bytes do.
func TestABadKeyNameIsNotTakenForEncryption(t *testing.T) {
	c := newCluster(t)
	c.put("/registry/secrets/ns/liar", "k8s:enc:none:v1:key:PLAINTEXT-MARKER")
	c.put("/registry/secrets/ns/raw", "PLAINTEXT-MARKER")
	r := c.scanWith(secrets.Options{})
	if got, want := summary(r, secrets.Live), "secrets live unknown 2\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
