package kube

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/testing/kmsplugin"
)

const plainVector = "k8s\x00\n\x0c\n\x02v1\x12\x06Secret\x12\x10HIDDEN-MARKER-01"

// opener has the configuration that the vectors were made with, and a rule
// for KMS besides.
func opener(t *testing.T, plugins map[string]*Plugin) *Opener {
	t.Helper()
	data, err := os.ReadFile("testdata/seal/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	kms := "- resources: [secrets]\n  providers:\n" +
		"  - kms: {name: vault, apiVersion: v2, endpoint: unix:///x}\n  - kms: {name: old, apiVersion: v1, endpoint: unix:///x}\n"
	c, err := ParseEncryptionConfig([]byte(string(data) + kms))
	if err != nil {
		t.Fatal(err)
	}
	return NewOpener(c, plugins)
}

func dial(t *testing.T, version, socket string) (*Plugin, string) {
	t.Helper()
	p, id, err := DialPlugin(t.Context(), KMSConfig{Name: "vault", APIVersion: version, Endpoint: "unix://" + socket, Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p, id
}

func TestOpenWhatTheAPIServerSealed(t *testing.T) {
	socket := kmsplugin.Start(t, kmsplugin.Options{KeyID: "key-2026"})
	v1, none := dial(t, "v1", socket)
	v2, id := dial(t, "v2", socket)
	if none != "" || id != "key-2026" {
		t.Errorf("current keys %q and %q, want none and key-2026", none, id)
	}
	o := opener(t, map[string]*Plugin{"kms:v2:vault": v2, "kms:v1:old": v1})
	vectors := sealed(t)
	if len(vectors) != 7 {
		t.Fatalf("%d vectors, want 7", len(vectors))
	}
	for name, v := range vectors {
		t.Run(name, func(t *testing.T) {
			value := strings.Replace(string(v.Value), "kms:v1:vault", "kms:v1:old", 1)
			key, _ := ParseKey("/registry", []byte(v.EtcdKey))
			plain, err := o.Open(t.Context(), key, []byte(v.EtcdKey), []byte(value))
			if err != nil || string(plain) != plainVector {
				t.Fatalf("opened %d bytes, %v", len(plain), err)
			}
			changed := []byte(value)
			at := len(changed) - 1
			if strings.Contains(name, "v2") {
				at = 70 // annotations may follow the data
			}
			changed[at] ^= 1
			if _, err := o.Open(t.Context(), key, []byte(v.EtcdKey), changed); err == nil {
				t.Error("a changed value opens")
			}
		})
	}
}

func TestOpenTellsWhatIsMissing(t *testing.T) {
	vectors := sealed(t)
	for name, tc := range map[string]struct {
		value string
		at    string
		want  error
	}{
		"another key's name":         {"k8s:enc:aescbc:v1:gone:" + strings.Repeat("x", 48), "/registry/secrets/ns/a", ErrNoKey},
		"another provider":           {string(vectors["aesgcm"].Value), "/registry/secrets/ns/a", ErrNoKey},
		"a value of another object":  {string(vectors["aesgcm"].Value), "/registry/configmaps/ns/other", ErrOpen},
		"an unknown format":          {"hunter2", "/registry/secrets/ns/a", ErrOpen},
		"a plugin that is not there": {string(vectors["kms v2 with a seed"].Value), "/registry/secrets/ns/kms2", ErrPlugin},
		"a resource not configured":  {string(vectors["aescbc"].Value), "/registry/pods/ns/a", ErrNoKey},
	} {
		t.Run(name, func(t *testing.T) {
			key, _ := ParseKey("/registry", []byte(tc.at))
			if _, err := opener(t, nil).Open(t.Context(), key, []byte(tc.at), []byte(tc.value)); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

func TestAPluginThatFailsIsNamedButNotQuoted(t *testing.T) {
	cfg := KMSConfig{Name: "vault", APIVersion: "v2", Endpoint: "unix://" + kmsplugin.Start(t, kmsplugin.Options{Fail: true}), Timeout: 30 * time.Second}
	_, _, err := DialPlugin(t.Context(), cfg)
	if err == nil || !strings.Contains(err.Error(), "vault") || strings.Contains(err.Error(), "MARKER") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cfg.Endpoint = "unix:///nonexistent/socket"
	if _, _, err := DialPlugin(ctx, cfg); err == nil || ctx.Err() != nil {
		t.Errorf("a socket that is not there: %v after %v", err, ctx.Err())
	}
}

func FuzzOpen(f *testing.F) {
	for _, v := range sealed(f) {
		f.Add([]byte("0123456789abcdef0123456789abcdef"), v.Value)
	}
	f.Fuzz(func(_ *testing.T, key, value []byte) {
		_, _ = openCBC(key, value)
		_, _ = openGCM(key, key, value)
		_, _ = openSecretbox(key, value)
		_, _ = openSeeded(key, key, value)
		_, _, _ = splitV1(value)
	})
}
