package secrets_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/etcdkit/etcdkit/internal/kube"
	"github.com/etcdkit/etcdkit/secrets"
)

// memory is a database file held in memory.
type memory struct{ *bytes.Reader }

func (m memory) Size() (int64, error) { return m.Reader.Size(), nil }

func mixed(t testing.TB) memory {
	t.Helper()
	data, err := os.ReadFile("testdata/kube/mixed.db")
	if err != nil {
		t.Fatal(err)
	}
	return memory{bytes.NewReader(data)}
}

func mixedConfig(t testing.TB) *kube.EncryptionConfig {
	t.Helper()
	data, err := os.ReadFile("testdata/kube/encryption-config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := kube.ParseEncryptionConfig(data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// summary writes the counts of some places one a line.
func summary(r *secrets.Report, places ...secrets.Place) string {
	var b strings.Builder
	for _, c := range r.Summary {
		if slices.Contains(places, c.Place) {
			fmt.Fprintln(&b, strings.Join(strings.Fields(fmt.Sprint(c.Resource, " ", c.Place, " ", c.State, " ", c.Provider, " ", c.Key, " ", c.Count)), " "))
		}
	}
	return b.String()
}

// names lists the findings in a state and a place.
func names(r *secrets.Report, state secrets.State, place secrets.Place) string {
	var all []string
	for _, f := range r.Findings {
		if f.State == state && f.Place == place {
			all = append(all, f.Namespace+"/"+f.Name)
		}
	}
	return strings.Join(all, " ")
}

func TestScanOfARealKeyspace(t *testing.T) {
	r, err := secrets.ScanFile(t.Context(), mixed(t), secrets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := `secrets live plain 11
secrets live encrypted aescbc key1 9
secrets live encrypted aesgcm gcm-prod 4
secrets live encrypted secretbox sb-2026 5
secrets history plain 3
`
	if got := summary(r, secrets.Live, secrets.History); got != want || r.Revision != 294 {
		t.Errorf("revision %d, got\n%swant\n%s", r.Revision, got, want)
	}
	inClear := "payments/regcred payments/web-tls team-a/plain-3 team-a/plain-4 team-a/plain-5 team-a/plain-6 team-a/plain-7 team-a/plain-8 team-a/plain-9 team-a/plain-10 team-a/plain-11"
	if got := names(r, secrets.Plain, secrets.Live); got != inClear {
		t.Errorf("in clear: %s\nwant %s", got, inClear)
	}
	if got := names(r, secrets.Plain, secrets.History); got != "team-a/plain-1 team-a/plain-2 team-a/plain-12" {
		t.Errorf("in clear in history: %s", got)
	}
	if got := summary(r, secrets.Free); got != "secrets free encrypted aesgcm gcm-prod 3\n" {
		t.Errorf("in free pages:\n%s", got)
	}
}

func TestScanAgainstTheConfiguration(t *testing.T) {
	r, err := secrets.ScanFile(t.Context(), mixed(t), secrets.Options{Config: mixedConfig(t)})
	if err != nil {
		t.Fatal(err)
	}
	want := `configmaps live plain 2
configmaps live stale secretbox sb-2026 1
secrets live plain 11
secrets live stale aescbc key1 9
secrets live stale secretbox sb-2026 5
secrets live current aesgcm gcm-prod 4
secrets history plain 3
secrets free current aesgcm gcm-prod 3
widgets.example.com live plain 1
widgets.example.com live stale secretbox sb-2026 1
`
	if got := summary(r, secrets.Places()...); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
