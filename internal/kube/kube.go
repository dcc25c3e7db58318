// Package kube knows how Kubernetes' API server lays out its objects in etcd:
// the keys, the storage encodings, the encryption at rest and its
// configuration. It reads bytes and never logs, prints or returns the content
// of an object, but for [Opener], which a caller has to ask.
package kube

import (
	"bytes"
	"strings"
)

// Key is an etcd key of Kubernetes, taken apart.
type Key struct {
	Prefix    string // what --etcd-prefix says, "/registry" as a rule
	Group     string // the API group, "" for the core group
	Resource  string // as the API spells it: "nodes", though etcd says "minions"
	Namespace string // "" for what has none
	Name      string
}

// GroupResource spells the resource the way an EncryptionConfiguration does:
// "secrets", "deployments.apps".
func (k Key) GroupResource() string {
	return GroupResource{Group: k.Group, Resource: k.Resource}.String()
}

// GroupResource names a resource in its API group.
type GroupResource struct{ Group, Resource string }

// ParseGroupResource reads "resource" or "resource.group"; "*.apps", "*." and
// "*.*" are wildcards.
func ParseGroupResource(s string) GroupResource {
	resource, group, _ := strings.Cut(s, ".")
	return GroupResource{Group: group, Resource: resource}
}

// String is the inverse of [ParseGroupResource].
func (gr GroupResource) String() string {
	if gr.Group == "" && gr.Resource != "*" {
		return gr.Resource
	}
	return gr.Resource + "." + gr.Group
}

// ParseKey takes apart an etcd key under prefix; ok is false for what is no
// object of Kubernetes: another prefix, too few or too many parts.
func ParseKey(prefix string, key []byte) (k Key, ok bool) {
	rest, ok := cutPrefix(prefix, key)
	if !ok {
		return Key{}, false
	}
	// Names hold no slash, so that the deepest key there is has four parts
	// after the prefix: group, resource, namespace, name.
	parts := strings.Split(rest, "/")
	for _, part := range parts {
		if part == "" {
			return Key{}, false
		}
	}
	k.Prefix = prefix
	openshift, below := openshiftStored(prefix, parts)
	switch {
	case below > 0:
		k.Group, k.Resource, parts = openshift.Group, openshift.Resource, parts[below:]
	case len(parts) >= 2 && isGroup(parts[0]): // a custom resource
		k.Group, k.Resource, parts = parts[0], parts[1], parts[2:]
	default:
		gr, taken := storedAt(parts)
		k.Group, k.Resource, parts = gr.Group, gr.Resource, parts[taken:]
	}
	switch len(parts) {
	case 1:
		k.Name = parts[0]
	case 2:
		k.Namespace, k.Name = parts[0], parts[1]
	default:
		return Key{}, false
	}
	return k, true
}

// cutPrefix returns what follows "prefix/" in key.
func cutPrefix(prefix string, key []byte) (string, bool) {
	if len(key) <= len(prefix) || string(key[:len(prefix)]) != prefix || key[len(prefix)] != '/' {
		return "", false
	}
	return string(key[len(prefix)+1:]), true
}

// isGroup reports whether the first part of a key is an API group: those of
// custom resources must hold a dot, and no resource name does.
func isGroup(part string) bool { return strings.Contains(part, ".") }

// StoragePrefixes returns the keys' beginnings under which the objects of gr
// are stored: "/registry/secrets/". A wildcard needs all of the keyspace.
func StoragePrefixes(prefix string, gr GroupResource) []string {
	if gr.Resource == "*" {
		return []string{prefix + "/"}
	}
	if dir := openshiftDir(prefix, gr); dir != "" {
		return []string{prefix + "/" + dir + "/"}
	}
	if r, ok := BuiltIn(gr); ok {
		return []string{prefix + "/" + r.Path + "/"}
	}
	withGroup := prefix + "/" + gr.Group + "/" + gr.Resource + "/"
	without := prefix + "/" + gr.Resource + "/"
	switch {
	case !isGroup(gr.Group):
		return []string{without}
	case builtIn(gr.Group): // of a newer API server: some groups are stored with their name, others without
		return []string{without, withGroup}
	}
	return []string{withGroup}
}

// printable reports whether b is a plain name: what is not, is not shown,
// because it may be anything, a part of an object's content included.
func printable(b []byte) bool {
	return bytes.IndexFunc(b, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}
