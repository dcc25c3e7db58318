package kube

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestParseEncryptionConfig(t *testing.T) {
	data, err := os.ReadFile("testdata/seal/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := ParseEncryptionConfig(data)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, rule := range c.Rules {
		for _, p := range rule.Providers {
			for _, k := range p.Keys {
				got = append(got, fmt.Sprintf("%d %v %s %s %d", rule.Line, rule.Resources, p.Kind, k.Name, len(k.secret())))
			}
		}
	}
	want := []string{
		"4 [secrets] aescbc cbc-new 32", "4 [secrets] aescbc cbc-old 16",
		"10 [configmaps] aesgcm gcm 24", "15 [deployments.apps] secretbox box 32",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%x", "%s"} {
		shown := fmt.Sprintf(verb+verb+verb, c, c.Rules, c.Rules[0].Providers[0].Keys)
		if strings.Contains(shown, "16 17 18") || strings.Contains(shown, "0x11, 0x12") || strings.Contains(shown, "101112") {
			t.Errorf("%s shows a key", verb)
		}
	}
}

// theSecret is base64 of 32 bytes; no message may hold it.
const theSecret = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

// config builds a file with one rule per argument.
func config(rules ...string) string {
	return "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n" + strings.Join(rules, "\n")
}

const oneKey = "{aescbc: {keys: [{name: k, secret: " + theSecret + "}]}}"

func TestABrokenEncryptionConfigIsRefusedWithItsLine(t *testing.T) {
	rule := func(resources, providers string) string {
		return "- resources: [" + resources + "]\n  providers: [" + providers + "]"
	}
	for name, tc := range map[string]struct {
		text string
		line int
		want string
	}{
		"empty":              {"", 0, "empty"},
		"only a comment":     {"# nothing\n", 0, "empty"},
		"not YAML":           {config("- resources: [" + theSecret), 0, "not valid YAML"},
		"a tab":              {"kind: x\n\t" + theSecret + ": y", 2, "not valid YAML"},
		"cut off":            {config(), 3, "a list is expected"},
		"another kind":       {"apiVersion: v1\nkind: Secret\nresources: []\n", 1, "no EncryptionConfiguration"},
		"an unknown field":   {config(rule("secrets", oneKey), "  provider: x"), 6, `unknown field "provider"`},
		"a key as field":     {config("- " + theSecret + ": x"), 4, "(not shown)"},
		"an unknown provder": {config(rule("secrets", "{rot13: {}}")), 5, `unknown field "rot13"`},
		"two in one":         {config(rule("secrets", "{identity: {}, kms: {name: a, endpoint: 'unix:///x'}}")), 5, "exactly one"},
		"no provider":        {config(rule("secrets", "{}")), 5, "exactly one"},
		"no providers":       {config(rule("secrets", "")), 4, "without providers"},
		"no resources":       {config(rule("", oneKey)), 4, "without resources"},
		"a short key":        {config(rule("secrets", "{aescbc: {keys: [{name: k, secret: AAAA}]}}")), 5, "has 3 bytes"},
		"a key not base64":   {config(rule("secrets", "{aescbc: {keys: [{name: k, secret: '"+theSecret+"!'}]}}")), 5, "not base64"},
		"a key without name": {config(rule("secrets", "{aescbc: {keys: [{secret: "+theSecret+"}]}}")), 5, "needs a name"},
		"a field twice":      {config(rule("secrets", "{aescbc: {keys: [{name: k, name: l, secret: "+theSecret+"}]}}")), 5, "stands twice"},
		"all as a star":      {config(rule(`"*"`, oneKey)), 4, `use "*.*"`},
		"capitals":           {config(rule("Secrets", oneKey)), 4, "capital"},
		"across groups":      {config(rule(`"secrets.*"`, oneKey)), 4, "all groups"},
		"overlap":            {config(rule(`secrets, "*."`, oneKey)), 4, "overlap"},
		"twice":              {config(rule("secrets, secrets", oneKey)), 4, "overlap"},
		"hidden":             {config(rule(`"*.*"`, oneKey), rule("secrets", oneKey)), 6, "hidden"},
		"kms without socket": {config(rule("secrets", "{kms: {name: a, endpoint: 'http://x'}}")), 5, "unix"},
		"kms of version 3":   {config(rule("secrets", "{kms: {name: a, apiVersion: v3, endpoint: 'unix:///x'}}")), 5, "v1 or v2"},
		"kms with a colon":   {config(rule("secrets", "{kms: {name: 'a:b', endpoint: 'unix:///x'}}")), 5, "without ':'"},
		"kms timeout":        {config(rule("secrets", "{kms: {name: a, timeout: soon, endpoint: 'unix:///x'}}")), 5, "duration"},
		"kms twice": {config(rule("secrets", "{kms: {name: a, endpoint: 'unix:///x'}}"),
			rule("configmaps", "{kms: {name: a, endpoint: 'unix:///x'}}")), 6, "two kms"},
		"a second document":  {config(rule("secrets", oneKey), "---", "a: b"), 6, "second document"},
		"an alias to itself": {config("- &a\n  resources: [secrets]\n  providers: *a"), 0, ""},
		"null":               {config("- resources: [secrets]\n  providers: [{aescbc: {keys: [{name: ~, secret: " + theSecret + "}]}}]"), 5, "text is expected"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := ParseEncryptionConfig([]byte(tc.text))
			var bad *ConfigError
			if !errors.As(err, &bad) {
				t.Fatalf("got %+v, %v; want a ConfigError", c, err)
			}
			if tc.line != 0 && bad.Line != tc.line || !strings.Contains(bad.Problem, tc.want) || strings.Contains(err.Error(), theSecret[:8]) {
				t.Errorf("line %d, %q; want line %d, %q", bad.Line, err, tc.line, tc.want)
			}
		})
	}
}

func TestProvidersFollowTheAPIServersOrder(t *testing.T) {
	c, err := ParseEncryptionConfig([]byte(config(
		"- resources: [secrets, widgets.example.com]\n  providers: [{identity: {}}, "+oneKey+"]",
		"- resources: ['*.apps']\n  providers: [{secretbox: {keys: [{name: k, secret: "+theSecret+"}]}}]",
		"- resources: ['*.']\n  providers: [{aesgcm: {keys: [{name: k, secret: "+theSecret+"}]}}]",
		"- resources: ['*.*']\n  providers: [{kms: {name: a, apiVersion: v2, endpoint: 'unix:///x'}}]",
	)))
	if err != nil {
		t.Fatal(err)
	}
	for resource, want := range map[string]string{
		"secrets": "identity aescbc", "configmaps": "aesgcm", "deployments.apps": "secretbox",
		"widgets.example.com": "identity aescbc", "gadgets.example.com": "kms:v2:a",
	} {
		providers, ok := c.Providers(ParseGroupResource(resource))
		var got []string
		for _, p := range providers {
			got = append(got, p.Name())
		}
		if !ok || strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, want %q", resource, got, want)
		}
	}
}

func FuzzEncryptionConfig(f *testing.F) {
	data, err := os.ReadFile("testdata/seal/config.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(config("- resources: ['*.*']\n  providers: [{kms: {name: a, apiVersion: v2, endpoint: 'unix:///x', timeout: 3s}}, {identity: {}}]")))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseEncryptionConfig(data)
		if err == nil && len(c.Rules) == 0 {
			t.Error("accepted a configuration without rules")
		}
		if _, ok := errors.AsType[*ConfigError](err); err != nil && !ok {
			t.Errorf("error of another type: %T", err)
		}
	})
}
