package secrets

import (
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/etcdkit/etcdkit/internal/kube"
)

// gitlabToken is made up, and put together here so that no scanner of
// repositories stumbles.
func gitlabToken() string { return "glpat" + "-" + "aB3dE6gH9jK2mN5pQ8sT" }

// made makes up a token of so many letters and digits after its beginning.
func made(prefix string, n int) string { return prefix + strings.Repeat("aB3dE6gH9j", n)[:n] }

// privateKey makes a new one: rules look at what is inside.
func privateKey(t *testing.T) string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// release is content as Helm stores it: gzip in base64.
func release(t *testing.T, content string) string {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(packed.Bytes())
}

func TestDetectNamesKindsOfCredentials(t *testing.T) {
	values := `{"name":"web","config":{"token":"` + gitlabToken() + `"},"manifest":"kind: Deployment"}`
	for name, tc := range map[string]struct {
		object, value string
		want          string
	}{
		"nothing":                         {"app", "k8s\x00 a ConfigMap with color=blue", ""},
		"a token":                         {"app", "k8s\x00 token=" + gitlabToken() + "\n", "gitlab-token"},
		"a token in JSON":                 {"app", `{"kind":"Pod","env":[{"value":"` + gitlabToken() + `"}]}`, "gitlab-token"},
		"a classic token of GitHub":       {"app", "k8s\x00(" + made("ghp_", 36), "github-token"},
		"a fine-grained one":              {"app", made(made("github_pat_", 22)+"_", 59), "github-token"},
		"one that is too short":           {"app", made("ghp_", 35) + "\n", ""},
		"a key of Stripe":                 {"app", `{"key":"` + made("sk_live_", 24) + `"}`, "stripe-key"},
		"a webhook's of Stripe":           {"app", made("whsec_", 32), "stripe-key"},
		"a name that looks a bit like it": {"app", "task_test_results_of_yesterday_evening", ""},
		"a private key":                   {"app", "k8s\x00 tls.key\n" + privateKey(t), "private-key"},
		"two kinds, in the rules' order":  {"app", gitlabToken() + "\n" + privateKey(t), "private-key,gitlab-token"},
		"a certificate is none":           {"ca", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", ""},
		"a Helm release":                  {"sh.helm.release.v1.web.v3", "k8s\x00 release " + release(t, values) + "\x1a\x00", "gitlab-token"},
		"a Helm release in JSON": {
			"sh.helm.release.v1.web.v3",
			`{"kind":"Secret","data":{"release":"` + base64.StdEncoding.EncodeToString([]byte(release(t, values))) + `"}}`, "gitlab-token",
		},
		"packed data that is no release":       {"app", "k8s\x00" + release(t, values), ""},
		"a Helm release that is cut off":       {"sh.helm.release.v1.web.v3", release(t, values)[:40], ""},
		"a Helm release that is no gzip":       {"sh.helm.release.v1.web.v3", "H4sInothing of the kind", ""},
		"a Helm release without content":       {"sh.helm.release.v1.web.v3", "k8s\x00", ""},
		"a Helm release that is only its mark": {"sh.helm.release.v1.web.v3", "H4sI", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := detect(rules(), tc.object, []byte(tc.value)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// What a release is unpacked to is bounded: gzip packs a thousand to one.
func TestAReleaseThatUnpacksWithoutEnd(t *testing.T) {
	bomb := release(t, strings.Repeat("\x00", 4*maxRelease))
	if got := len(unpack([]byte(bomb))); got != maxRelease {
		t.Errorf("unpacked to %d bytes, want %d", got, maxRelease)
	}
}

func TestWhatIsSearched(t *testing.T) {
	for name, tc := range map[string]struct {
		gr     kube.GroupResource
		object string
		want   bool
	}{
		"a ConfigMap":                   {kube.GroupResource{Resource: "configmaps"}, "app", true},
		"a custom resource":             {kube.GroupResource{Group: "example.com", Resource: "things"}, "x", true},
		"a Secret is where they belong": {kube.GroupResource{Resource: "secrets"}, "token", false},
		"a Helm release in a Secret":    {kube.GroupResource{Resource: "secrets"}, "sh.helm.release.v1.a.v1", true},
		"a Lease":                       {kube.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, "node", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := searched(tc.gr, tc.object); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add([]byte("k8s\x00H4sIAAAAAAAA"))
	f.Add([]byte("SDRzSUFBQUFBQUFB"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if got := len(unpack(data)); got > maxRelease {
			t.Errorf("unpacked to %d bytes", got)
		}
	})
}
