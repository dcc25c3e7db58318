package kube

import (
	"fmt"
	"slices"
	"time"
)

// The kinds of providers that an EncryptionConfiguration knows.
const (
	Identity  = "identity"
	AESCBC    = "aescbc"
	AESGCM    = "aesgcm"
	Secretbox = "secretbox"
	KMS       = "kms"
)

// EncryptionConfig is what an EncryptionConfiguration file says, checked the
// way the API server checks it.
type EncryptionConfig struct {
	Rules []Rule
}

// Rule says how some resources are stored.
type Rule struct {
	Resources []GroupResource
	Providers []Provider
	Line      int // in the file
}

// Provider is one way to store objects. The first of a rule writes, all of
// them are tried for reading.
type Provider struct {
	Kind string // Identity, AESCBC, AESGCM, Secretbox or KMS
	Keys []NamedKey
	KMS  *KMSConfig
}

// Name is the provider's name as [Storage] has it.
func (p Provider) Name() string {
	if p.KMS != nil {
		return "kms:" + p.KMS.APIVersion + ":" + p.KMS.Name
	}
	return p.Kind
}

// NamedKey is a key of the configuration.
type NamedKey struct {
	Name   string
	secret func() []byte // a func, so that no format verb and no encoder can show the key
}

// KMSConfig tells how to reach a key management service's plugin.
type KMSConfig struct {
	Name       string
	APIVersion string // "v1" or "v2"
	Endpoint   string // unix:///path
	Timeout    time.Duration
}

// A ConfigError says what is wrong with an EncryptionConfiguration, and where.
// It never quotes what may be a key.
type ConfigError struct {
	Line    int // 0 for what concerns the whole file
	Problem string
}

func (e *ConfigError) Error() string {
	if e.Line == 0 {
		return "read encryption configuration: " + e.Problem
	}
	return fmt.Sprintf("read encryption configuration: line %d: %s", e.Line, e.Problem)
}

// Providers returns the providers for gr, in the order in which the API server
// tries them, and whether any rule covers it. The exact resource beats its
// group's wildcard, and that beats "*.*"; several rules for the same resource
// add up, the first one writes.
func (c *EncryptionConfig) Providers(gr GroupResource) ([]Provider, bool) {
	for _, want := range []GroupResource{gr, {Group: gr.Group, Resource: "*"}, {Group: "*", Resource: "*"}} {
		var found []Provider
		for _, rule := range c.Rules {
			if rule.covers(want) {
				found = append(found, rule.Providers...)
			}
		}
		if found != nil {
			return found, true
		}
	}
	return nil, false
}

func (r Rule) covers(gr GroupResource) bool { return slices.Contains(r.Resources, gr) }

// Resources returns every resource and wildcard that the rules name, in order.
func (c *EncryptionConfig) Resources() []GroupResource {
	var all []GroupResource
	seen := make(map[GroupResource]bool)
	for _, rule := range c.Rules {
		for _, gr := range rule.Resources {
			if !seen[gr] {
				seen[gr] = true
				all = append(all, gr)
			}
		}
	}
	return all
}

// KMSPlugins returns the plugins that the configuration names, each once.
func (c *EncryptionConfig) KMSPlugins() []KMSConfig {
	var all []KMSConfig
	seen := make(map[string]bool)
	for _, rule := range c.Rules {
		for _, p := range rule.Providers {
			if p.KMS != nil && !seen[p.Name()] {
				seen[p.Name()] = true
				all = append(all, *p.KMS)
			}
		}
	}
	return all
}
