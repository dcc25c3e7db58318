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
		"aescbc":                       {value("aescbc"), Storage{Format: Encrypted, Provider: "aescbc", Key: "cbc-new"}},
		"aesgcm":                       {value("aesgcm"), Storage{Format: Encrypted, Provider: "aesgcm", Key: "gcm"}},
		"secretbox":                    {value("secretbox"), Storage{Format: Encrypted, Provider: "secretbox", Key: "box"}},
		"KMS v1 stores no key id":      {value("kms v1"), Storage{Format: Encrypted, Provider: "kms:v1:vault", Key: ""}},
		"KMS v2":                       {value("kms v2 with a seed"), Storage{Format: Encrypted, Provider: "kms:v2:vault", Key: "key-2026"}},
		"KMS v2 with a key":            {value("kms v2 with a key"), Storage{Format: Encrypted, Provider: "kms:v2:vault", Key: "key-2026"}},
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

// What only looks encrypted, and what an API server reads though it begins
// otherwise, is not passed for encrypted.
func TestClassifyLooksBehindTheMark(t *testing.T) {
	sixteen := strings.Repeat("\x07", 16)
	for name, tc := range map[string]struct {
		value string
		want  Storage
	}{
		"JSON after white space":          {" \n\t{\"kind\":\"Secret\"}", Storage{Format: JSON}},
		"JSON after a byte order mark":    {"\ufeff{\"kind\":\"Secret\"}", Storage{Format: JSON}},
		"YAML":                            {"apiVersion: v1\nkind: Secret\n", Storage{}},
		"aescbc of one block":             {"k8s:enc:aescbc:v1:k:" + sixteen, Storage{}},
		"aescbc of a part of a block":     {"k8s:enc:aescbc:v1:k:" + sixteen + sixteen + "x", Storage{}},
		"aescbc":                          {"k8s:enc:aescbc:v1:k:" + sixteen + sixteen, Storage{Format: Encrypted, Provider: AESCBC, Key: "k"}},
		"aesgcm of nothing":               {"k8s:enc:aesgcm:v1:k:" + sixteen + sixteen[:12], Storage{}},
		"secretbox of nothing":            {"k8s:enc:secretbox:v1:k:" + sixteen + sixteen + sixteen[:8], Storage{}},
		"secretbox":                       {"k8s:enc:secretbox:v1:k:" + sixteen + sixteen + sixteen, Storage{Format: Encrypted, Provider: Secretbox, Key: "k"}},
		"KMS v1 without data":             {"k8s:enc:kms:v1:vault:\x00\x03abc", Storage{}},
		"a name with a space":             {"k8s:enc:aescbc:v1:my key:" + sixteen + sixteen, Storage{Format: Encrypted, Provider: AESCBC, Key: "my key"}},
		"a name with an umlaut":           {"k8s:enc:secretbox:v1:schlüssel:" + sixteen + sixteen + sixteen, Storage{Format: Encrypted, Provider: Secretbox, Key: "schlüssel"}},
		"a name with a colon":             {"k8s:enc:secretbox:v1:a:b:" + sixteen + sixteen + sixteen, Storage{Format: Encrypted, Provider: Secretbox}},
		"a name with a colon, by length":  {"k8s:enc:aescbc:v1:a:b:" + sixteen + sixteen, Storage{Format: Encrypted, Provider: AESCBC, Key: "a:b"}},
		"data that begins as a name does": {"k8s:enc:aescbc:v1:a:b:" + sixteen + sixteen[:14], Storage{Format: Encrypted, Provider: AESCBC, Key: "a"}},
	} {
		if got := Classify([]byte(tc.value)); got != tc.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tc.want)
		}
	}
}

func TestNamesOfTheConfigurationComeFirst(t *testing.T) {
	c := &EncryptionConfig{Rules: []Rule{{Providers: []Provider{{Kind: Secretbox, Keys: []NamedKey{{Name: "a"}, {Name: "a:b"}, {Name: "a:b\tc"}}}}}}}
	for mark, want := range map[string]string{"a:b:": "a:b", "a:\x01": "a", "a:b\tc:": "a:b\tc", "a:c:": "a", "z:c:": ""} {
		value := "k8s:enc:secretbox:v1:" + mark + strings.Repeat("\x07", 48)
		if got := c.Classify([]byte(value), true); got.Format != Encrypted || got.Key != want {
			t.Errorf("%q: got %+v, want key %q", mark, got, want)
		}
	}
}

// A value whose end is missing is not judged before it can be, and then is.
func TestClassifyOfAPart(t *testing.T) {
	for name, v := range sealed(t) {
		whole := Classify(v.Value)
		for n := range v.Value {
			got := (*EncryptionConfig)(nil).Classify(v.Value[:n], false)
			if got.Format == Unknown && !got.Cut || got.Format == Encrypted && got.Provider != whole.Provider || got.Format.Plain() {
				t.Errorf("%s: %d bytes are judged %+v", name, n, got)
			}
		}
	}
	for value, cut := range map[string]bool{"": true, "k8s": true, "k8s:enc:aes": true, " ": true, "{": true, "hunter2": false, "{hunter2": false, "k8x": false, "k8s:enc:a\x00": false, "k8s:enc:rot13:v1:": false} {
		if got := (*EncryptionConfig)(nil).Classify([]byte(value), false); got != (Storage{Cut: cut}) {
			t.Errorf("%q: got %+v", value, got)
		}
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
