package kube

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// defaultKMSTimeout is what the API server waits for a plugin unless told.
const defaultKMSTimeout = 3 * time.Second

// ParseEncryptionConfig reads an EncryptionConfiguration in YAML or JSON. It
// is strict: what the API server would refuse, or would read differently than
// written, is a [*ConfigError].
func ParseEncryptionConfig(data []byte) (*EncryptionConfig, error) {
	root, err := parseYAML(data)
	if err != nil {
		return nil, err
	}
	var c EncryptionConfig
	var version, kind string
	err = fields(root, "the file", map[string]func(*yaml.Node) error{
		"apiVersion": text(&version),
		"kind":       text(&kind),
		"resources": items(func(n *yaml.Node) error {
			rule, err := parseRule(n)
			c.Rules = append(c.Rules, rule)
			return err
		}),
	})
	switch {
	case err != nil:
		return nil, err
	case kind != "EncryptionConfiguration" || version != "apiserver.config.k8s.io/v1":
		return nil, problem(root, "this is no EncryptionConfiguration of apiserver.config.k8s.io/v1")
	case len(c.Rules) == 0:
		return nil, problem(root, "there are no resources")
	}
	return &c, c.check()
}

// parseYAML returns the one document that data holds. The parser's own
// messages quote the text, which may be a key, so only the line is taken over.
func parseYAML(data []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, &ConfigError{Problem: "the file is empty"}
	case err != nil:
		return nil, &ConfigError{Line: lineOf(err), Problem: "this is not valid YAML"}
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, &ConfigError{Line: max(more.Line, lineOf(err)), Problem: "a second document begins here, one is expected"}
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, &ConfigError{Problem: "the file is empty"}
	}
	return doc.Content[0], nil
}

func lineOf(err error) int {
	if err == nil {
		return 0
	}
	m := regexp.MustCompile(`line (\d+)`).FindStringSubmatch(err.Error())
	if m == nil {
		return 0
	}
	line, _ := strconv.Atoi(m[1])
	return line
}

func parseRule(n *yaml.Node) (Rule, error) {
	rule := Rule{Line: n.Line}
	err := fields(n, "an entry of resources", map[string]func(*yaml.Node) error{
		"resources": items(func(n *yaml.Node) error {
			var name string
			if err := text(&name)(n); err != nil {
				return err
			}
			gr := ParseGroupResource(name)
			rule.Resources = append(rule.Resources, gr)
			return checkResource(n, name, gr)
		}),
		"providers": items(func(n *yaml.Node) error {
			p, err := parseProvider(n)
			rule.Providers = append(rule.Providers, p)
			return err
		}),
	})
	switch {
	case err != nil:
		return rule, err
	case len(rule.Resources) == 0:
		return rule, problem(n, "an entry without resources")
	case len(rule.Providers) == 0:
		return rule, problem(n, "an entry without providers")
	}
	return rule, checkOverlap(n, rule.Resources)
}

func parseProvider(n *yaml.Node) (Provider, error) {
	var p Provider
	keys := func(kind string, sizes ...int) func(*yaml.Node) error {
		return func(n *yaml.Node) (err error) {
			p.Kind = kind
			p.Keys, err = parseKeys(n, sizes)
			return err
		}
	}
	err := fields(n, "a provider", map[string]func(*yaml.Node) error{
		AESCBC:    keys(AESCBC, 16, 24, 32),
		AESGCM:    keys(AESGCM, 16, 24, 32),
		Secretbox: keys(Secretbox, 32),
		Identity: func(n *yaml.Node) error {
			p.Kind = Identity
			return fields(n, "identity", nil)
		},
		KMS: func(n *yaml.Node) (err error) {
			p.Kind = KMS
			p.KMS, err = parseKMS(n)
			return err
		},
	})
	if err == nil && len(resolve(n).Content) != 2 {
		err = problem(n, "a provider must be exactly one of aescbc, aesgcm, secretbox, kms, identity")
	}
	return p, err
}

func parseKeys(n *yaml.Node, sizes []int) ([]NamedKey, error) {
	var keys []NamedKey
	err := fields(n, "the provider", map[string]func(*yaml.Node) error{
		"keys": items(func(n *yaml.Node) error {
			key, err := parseKey(n, sizes)
			keys = append(keys, key)
			return err
		}),
	})
	if err == nil && len(keys) == 0 {
		err = problem(n, "a provider without keys")
	}
	return keys, err
}

func parseKey(n *yaml.Node, sizes []int) (NamedKey, error) {
	var key NamedKey
	var encoded string
	err := fields(n, "a key", map[string]func(*yaml.Node) error{"name": text(&key.Name), "secret": text(&encoded)})
	if err != nil {
		return key, err
	}
	if key.Name == "" || encoded == "" {
		return key, problem(n, "a key needs a name and a secret")
	}
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return key, problem(n, "the secret of key %s is not base64", shown(key.Name))
	}
	if !slices.Contains(sizes, len(decoded)) {
		return key, problem(n, "the secret of key %s has %d bytes, expected one of %v", shown(key.Name), len(decoded), sizes)
	}
	key.secret = func() []byte { return decoded }
	return key, nil
}

func parseKMS(n *yaml.Node) (*KMSConfig, error) {
	k := KMSConfig{APIVersion: "v1", Timeout: defaultKMSTimeout}
	var timeout, cache string
	err := fields(n, "kms", map[string]func(*yaml.Node) error{
		"apiVersion": text(&k.APIVersion), "name": text(&k.Name), "endpoint": text(&k.Endpoint),
		"timeout": text(&timeout), "cachesize": text(&cache),
	})
	if err != nil {
		return nil, err
	}
	if timeout != "" {
		if k.Timeout, err = time.ParseDuration(timeout); err != nil || k.Timeout <= 0 {
			return nil, problem(n, "the timeout of a kms provider must be a positive duration such as 3s")
		}
	}
	u, err := url.Parse(k.Endpoint)
	switch {
	case k.Name == "" || strings.Contains(k.Name, ":"):
		return nil, problem(n, "a kms provider needs a name without ':'")
	case k.APIVersion != "v1" && k.APIVersion != "v2":
		return nil, problem(n, "the apiVersion of a kms provider must be v1 or v2")
	case err != nil || u.Scheme != "unix" || u.Path == "":
		return nil, problem(n, "the endpoint of a kms provider must be unix:///PATH")
	case cache != "" && k.APIVersion != "v1":
		return nil, problem(n, "cachesize exists for kms v1 only")
	}
	return &k, nil
}

// fields hands each value of the mapping n to its reader, and refuses what
// has none. what names n in messages.
func fields(n *yaml.Node, what string, readers map[string]func(*yaml.Node) error) error {
	n = resolve(n)
	if n.Kind != yaml.MappingNode {
		return problem(n, "%s must be a mapping", what)
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		read, ok := readers[name.Value]
		switch {
		case !ok:
			return problem(name, "unknown field %s in %s", shown(name.Value), what)
		case seen[name.Value]:
			return problem(name, "field %s stands twice", shown(name.Value))
		}
		seen[name.Value] = true
		if err := read(value); err != nil {
			return err
		}
	}
	return nil
}

// items hands each item of a sequence to read.
func items(read func(*yaml.Node) error) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		n = resolve(n)
		if n.Kind != yaml.SequenceNode {
			return problem(n, "a list is expected here")
		}
		for _, item := range n.Content {
			if err := read(item); err != nil {
				return err
			}
		}
		return nil
	}
}

func text(to *string) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		n = resolve(n)
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			return problem(n, "a text is expected here")
		}
		*to = n.Value
		return nil
	}
}

func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func problem(n *yaml.Node, format string, args ...any) error {
	return &ConfigError{Line: n.Line, Problem: fmt.Sprintf(format, args...)}
}

// shown quotes a name from the file, unless it could be a key in the wrong place.
func shown(name string) string {
	if len(name) > 32 || !printable([]byte(name)) || strings.ContainsAny(name, "=+/") {
		return "(not shown)"
	}
	return strconv.Quote(name)
}
