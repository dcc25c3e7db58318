package kube

import (
	"bytes"
	"maps"
	"slices"
	"strings"
)

// maxCandidates bounds what a Finder remembers of a keyspace that is not
// Kubernetes'.
const maxCandidates = 4096

// Finder finds the etcd prefixes under which Kubernetes keeps its objects from
// the keys and values shown to it. More than one is possible: some hosts keep
// many control planes in one etcd. The zero value is ready.
type Finder struct {
	seen map[string]*evidence
	last *evidence // of the prefix seen last: most keys in a row share it
	name string
}

// evidence is what speaks for one prefix.
type evidence struct {
	kinds map[string]bool // well-known resources seen under it
	value bool            // a value there is in a storage format of Kubernetes
}

// Add shows one key with its value, of which the first bytes are enough, and
// which may be nil.
func (f *Finder) Add(key, value []byte) {
	if f.last != nil && f.last.sure() && hasDir(key, f.name) {
		return
	}
	prefix, kind, ok := splitAtKind(key)
	sure := isStorage(value)
	if !ok || len(value) > 0 && !sure && !isStorageJSON(value) {
		return // other programs have keys with such words in them, too
	}
	if f.seen == nil {
		f.seen = make(map[string]*evidence)
	}
	e := f.seen[prefix]
	if e == nil {
		if len(f.seen) >= maxCandidates {
			return
		}
		e = &evidence{kinds: make(map[string]bool)}
		f.seen[prefix] = e
	}
	e.kinds[kind] = true
	e.value = e.value || sure
	f.last, f.name = e, prefix
}

// sure reports whether the evidence is enough: two well-known resources, or
// one with a value that only an API server writes.
func (e *evidence) sure() bool { return e.value || len(e.kinds) >= 2 }

// Prefixes returns the prefixes found so far, sorted.
func (f *Finder) Prefixes() []string {
	var found []string
	for _, prefix := range slices.Sorted(maps.Keys(f.seen)) {
		if f.seen[prefix].sure() && !f.inGroup(prefix) {
			found = append(found, prefix)
		}
	}
	return found
}

// inGroup reports whether prefix is only a group of custom resources under
// another prefix: "/registry/example.com" has "secrets" when a custom resource
// is named so.
func (f *Finder) inGroup(prefix string) bool {
	parent, group, ok := cutLast(prefix)
	if !ok || !isGroup(group) {
		return false
	}
	e := f.seen[parent]
	return e != nil && e.sure()
}

// splitAtKind cuts key before its first part that is a well-known resource.
func splitAtKind(key []byte) (prefix, kind string, ok bool) {
	for from := 0; ; {
		slash := bytes.IndexByte(key[from:], '/')
		if slash < 0 {
			return "", "", false
		}
		slash += from
		end := bytes.IndexByte(key[slash+1:], '/')
		if end < 0 {
			return "", "", false // a kind is followed by a name
		}
		if part := key[slash+1 : slash+1+end]; wellKnown(string(part)) {
			return string(key[:slash]), string(part), true
		}
		from = slash + 1
	}
}

func hasDir(key []byte, dir string) bool {
	return len(key) > len(dir) && string(key[:len(dir)]) == dir && key[len(dir)] == '/'
}

func cutLast(prefix string) (parent, last string, ok bool) {
	i := strings.LastIndexByte(prefix, '/')
	if i < 0 {
		return "", "", false
	}
	return prefix[:i], prefix[i+1:], true
}
