package kube

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// sealedVector is a value that the API server's own code encrypted; see testdata/seal.
type sealedVector struct {
	EtcdKey string `json:"etcdKey"`
	Value   []byte `json:"value"`
}

func sealed(t testing.TB) map[string]sealedVector {
	t.Helper()
	data, err := os.ReadFile("testdata/sealed.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors map[string]sealedVector
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	return vectors
}

func TestClassify(t *testing.T) {
	vectors := sealed(t)
	value := func(name string) string { return string(vectors[name].Value) }
	for name, tc := range map[string]struct {
		value string
		want  Storage
	}{
		"protobuf":                     {"k8s\x00\n\x0c\n\x02v1", Storage{Format: Protobuf}},
		"JSON":                         {`{"kind":"Widget"}`, Storage{Format: JSON}},
		"indented JSON":                {"{\n  \"kind\": 1}", Storage{Format: JSON}},
		"CBOR":                         {"\xd9\xd9\xf7\xa1", Storage{Format: CBOR}},
		"aescbc":                       {value("aescbc"), Storage{Encrypted, "aescbc", "cbc-new"}},
		"aesgcm":                       {value("aesgcm"), Storage{Encrypted, "aesgcm", "gcm"}},
		"secretbox":                    {value("secretbox"), Storage{Encrypted, "secretbox", "box"}},
		"KMS v1 stores no key id":      {value("kms v1"), Storage{Encrypted, "kms:v1:vault", ""}},
		"KMS v2":                       {value("kms v2 with a seed"), Storage{Encrypted, "kms:v2:vault", "key-2026"}},
		"KMS v2 with a key":            {value("kms v2 with a key"), Storage{Encrypted, "kms:v2:vault", "key-2026"}},
		"KMS v2 cut off":               {value("kms v2 with a key")[:60], Storage{}},
		"KMS v2 without an envelope":   {"k8s:enc:kms:v2:vault:", Storage{}},
		"nothing":                      {"", Storage{}},
		"a brace alone":                {"{", Storage{}},
		"a brace before other text":    {"{hello", Storage{}},
		"plain text":                   {"hunter2", Storage{}},
		"an unknown provider":          {"k8s:enc:rot13:v1:key:x", Storage{}},
		"an unknown version":           {"k8s:enc:aescbc:v2:key:x", Storage{}},
		"no key name":                  {"k8s:enc:aescbc:v1::x", Storage{}},
		"a key name that is no name":   {"k8s:enc:aescbc:v1:\x01\x02:x", Storage{}},
		"a key name without end":       {"k8s:enc:aescbc:v1:key", Storage{}},
		"a key name of many bytes":     {"k8s:enc:aescbc:v1:" + strings.Repeat("k", 300) + ":x", Storage{}},
		"only the mark of Kubernetes":  {"k8s", Storage{}},
		"only the mark of encryption":  {"k8s:enc:", Storage{}},
		"identity writes no such mark": {"k8s:enc:identity:v1:x", Storage{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Classify([]byte(tc.value)); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func FuzzClassify(f *testing.F) {
	for _, v := range sealed(f) {
		f.Add(v.Value)
	}
	f.Add([]byte("k8s\x00"))
	f.Add([]byte(`{"a":1}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		s := Classify(value)
		if (s.Format == Encrypted) != (s.Provider != "") {
			t.Errorf("%+v: encrypted without a provider, or the reverse", s)
		}
		if s.Format == Encrypted && !strings.HasPrefix(string(value), "k8s:enc:") {
			t.Errorf("%+v without the mark of encryption", s)
		}
	})
}

func FuzzEnvelope(f *testing.F) {
	for name, v := range sealed(f) {
		if strings.HasPrefix(name, "kms v2") {
			f.Add(v.Value[len("k8s:enc:kms:v2:vault:"):])
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := parseEnvelope(b)
		if err == nil && (e.keyID == "" || len(e.keyID) > maxKeyID || len(e.data) == 0 || len(e.dek) == 0) {
			t.Errorf("accepted %+v", e)
		}
	})
}

func FuzzParseKey(f *testing.F) {
	f.Add("/registry", []byte("/registry/secrets/ns/name"))
	f.Add("", []byte("/example.com/widgets/ns/name"))
	f.Fuzz(func(t *testing.T, prefix string, key []byte) {
		if k, ok := ParseKey(prefix, key); ok && (k.Resource == "" || k.Name == "" || strings.Contains(k.Name, "/")) {
			t.Errorf("%q under %q gives %+v", key, prefix, k)
		}
		var finder Finder
		finder.Add(key, key)
		finder.Prefixes()
	})
}
