package sample_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/etcd"
	"github.com/etcdkit/etcdkit/internal/kube"
	"github.com/etcdkit/etcdkit/internal/kube/sample"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

func objects(t *testing.T, n int) []sample.Object {
	t.Helper()
	all, err := sample.Objects(n, 1)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTheSameSeedGivesTheSameObjects(t *testing.T) {
	same := slices.EqualFunc(objects(t, 500), objects(t, 500), func(a, b sample.Object) bool {
		return a.Key == b.Key && bytes.Equal(a.Value, b.Value)
	})
	if !same {
		t.Error("two keyspaces of one seed differ")
	}
}

func TestEveryEncryptedSecretOpensAndTheOthersAreInClear(t *testing.T) {
	config, err := kube.ParseEncryptionConfig(sample.EncryptionConfig(sample.Keys(1)))
	if err != nil {
		t.Fatal(err)
	}
	opener := kube.NewOpener(config, nil)
	count := map[string]int{}
	for _, o := range objects(t, 2000) {
		if !strings.HasPrefix(o.Key, sample.Prefix+"/secrets/") {
			continue
		}
		count[o.Encryption]++
		if o.Encryption == "" {
			if !bytes.HasPrefix(o.Value, []byte("k8s\x00")) {
				t.Errorf("%s is neither encrypted nor protobuf", o.Key)
			}
			continue
		}
		key, ok := kube.ParseKey(sample.Prefix, []byte(o.Key))
		plain, err := opener.Open(t.Context(), key, []byte(o.Key), o.Value)
		if !ok || err != nil || !bytes.HasPrefix(plain, []byte("k8s\x00")) {
			t.Errorf("%s by %s: key %v, %v", o.Key, o.Encryption, ok, err)
		}
	}
	for _, provider := range []string{"", "aescbc", "aesgcm", "secretbox"} {
		if count[provider] < 20 {
			t.Errorf("%d Secrets by provider %q, want some of each", count[provider], provider)
		}
	}
}

func TestFillWritesAllKeys(t *testing.T) {
	cluster := etcdtest.Start(t, embedded.Options{})
	client, err := etcd.Dial(t.Context(), etcd.Config{Endpoints: cluster.Endpoints()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := sample.Fill(t.Context(), client, objects(t, 1050)); err != nil {
		t.Fatal(err)
	}
	prefixes, err := kube.Discover(t.Context(), client)
	if err != nil || !slices.Equal(prefixes, []string{sample.Prefix}) {
		t.Errorf("prefixes %v, %v; want %s alone", prefixes, err, sample.Prefix)
	}
}
