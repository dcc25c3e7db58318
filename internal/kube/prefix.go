package kube

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
)

const (
	// maxParts bounds the parts of a prefix: "/a/b/c/d".
	maxParts = 4
	// maxCandidates bounds what a Finder remembers of a keyspace that has many
	// prefixes. The shortest prefixes are remembered, so the order of the keys
	// does not matter.
	maxCandidates = 4096
)

// Finder finds the etcd prefixes under which Kubernetes keeps its objects from
// the keys and values shown to it. More than one is possible: some hosts keep
// many control planes in one etcd.
//
// The answer depends on the set of keys and values alone. Their order,
// repetitions, and how they were spread over Finders that are merged later do
// not change it. Deletions are no evidence and are not shown to a Finder. The
// zero value is ready.
type Finder struct {
	certain candidates[proof]           // prefixes with a value that only an API server writes
	likely  candidates[map[string]bool] // kinds of objects in JSON, which other programs write as well
	last    string                      // a certain prefix: most keys in a row share it
	isLast  bool
}

// proof is what speaks for a prefix.
type proof struct {
	protobuf bool // a value is in protobuf, which API servers write only for their own resources
	fits     bool // a key has as many parts as an object of its resource has
}

// Add shows the finder one stored key with its value, of which the first 512
// bytes are enough.
func (f *Finder) Add(key, value []byte) {
	if f.isLast && IsBuiltInObject(f.last, key) {
		return // it belongs to a prefix that is certain already
	}
	certain := isStorage(value)
	if !certain && !isStorageJSON(value) {
		return // other programs have keys with such words in them
	}
	prefix, kind, fits, ok := splitAtKind(key)
	switch {
	case !ok:
	case certain:
		known := f.certain.at(prefix)
		known.protobuf = known.protobuf || bytes.HasPrefix(value, []byte(protobufMagic))
		known.fits = known.fits || fits
		// A prefix that looks like a group has to be seen in protobuf.
		f.last, f.isLast = prefix, known.protobuf && known.fits && !calledAsResource(prefix)
	default:
		kinds := f.likely.at(prefix)
		if *kinds == nil {
			*kinds = make(map[string]bool)
		}
		(*kinds)[kind] = true
	}
}

// calledAsResource reports whether a part of prefix is the name of a resource,
// so that a key below may be cut in two ways.
func calledAsResource(prefix string) bool {
	return slices.ContainsFunc(strings.Split(prefix, "/"), func(part string) bool { return builtInAt(part) >= 0 || wellKnown(part) })
}

// Merge adds everything that was shown to other.
func (f *Finder) Merge(other *Finder) {
	for prefix, proof := range other.certain.all {
		known := f.certain.at(prefix)
		known.protobuf, known.fits = known.protobuf || proof.protobuf, known.fits || proof.fits
	}
	for prefix, kinds := range other.likely.all {
		mine := f.likely.at(prefix)
		if *mine == nil {
			*mine = make(map[string]bool)
		}
		maps.Copy(*mine, *kinds)
	}
}

// Prefixes returns the prefixes found so far, sorted. It takes one value that
// only an API server writes, or objects in JSON of two well-known kinds.
func (f *Finder) Prefixes() []string {
	f.certain.shrink(maxCandidates)
	f.likely.shrink(maxCandidates)
	found := slices.Collect(maps.Keys(f.certain.all))
	for prefix, kinds := range f.likely.all {
		if len(*kinds) >= 2 {
			found = append(found, prefix)
		}
	}
	return f.withoutGroups(f.withoutGuesses(found))
}

// withoutGuesses drops prefixes without a key that has the form of an object's,
// where one with such a key lies below: "/pods/registry" is no pod.
func (f *Finder) withoutGuesses(prefixes []string) []string {
	return slices.DeleteFunc(prefixes, func(p string) bool {
		if proof := f.certain.all[p]; proof == nil || proof.fits {
			return false
		}
		for other, proof := range f.certain.all {
			if proof.fits && hasDir([]byte(other), p) {
				return true
			}
		}
		return false
	})
}

// withoutGroups sorts prefixes and drops those that are only a group of custom
// resources under another one: "/registry/vault.io" has "secrets" when a custom
// resource is named so. What is stored there in protobuf is of a control plane.
func (f *Finder) withoutGroups(prefixes []string) []string {
	slices.Sort(prefixes)
	var kept []string
	for _, p := range slices.Compact(prefixes) {
		proof := f.certain.all[p]
		group := func(o string) bool { return hasDir([]byte(p), o) && isGroup(p[len(o)+1:]) }
		if proof != nil && proof.protobuf || !slices.ContainsFunc(kept, group) {
			kept = append(kept, p)
		}
	}
	return kept
}

// candidates are prefixes with what is known of each. The zero value is empty.
type candidates[T any] struct {
	all map[string]*T
}

// at returns what is known of a prefix.
func (c *candidates[T]) at(prefix string) *T {
	if c.all == nil {
		c.all = make(map[string]*T)
	}
	known := c.all[prefix]
	if known == nil {
		if len(c.all) >= 2*maxCandidates {
			c.shrink(maxCandidates)
		}
		known = new(T)
		c.all[prefix] = known
	}
	return known
}

// shrink forgets all but the n first prefixes, short ones first. A forgotten
// prefix never becomes one of the first later, because the n before it stay. So
// everything is known of the prefixes that are first in the end.
func (c *candidates[T]) shrink(n int) {
	if len(c.all) <= n {
		return
	}
	order := slices.SortedFunc(maps.Keys(c.all), func(a, b string) int {
		return cmp.Or(strings.Count(a, "/")-strings.Count(b, "/"), strings.Compare(a, b))
	})
	for _, prefix := range order[n:] {
		delete(c.all, prefix)
	}
}

// splitAtKind cuts key before the resource that it is an object of. Where no
// part of the key is followed by as many parts as an object of that resource
// has, the first part that is a well-known resource counts. Prefixes begin with
// a slash and have at most maxParts parts.
func splitAtKind(key []byte) (prefix, kind string, fits, ok bool) {
	if len(key) == 0 || key[0] != '/' {
		return "", "", false, false
	}
	slash := 0
	for range maxParts + 1 {
		part, deeper := firstPart(key[slash+1:])
		if !deeper {
			break // a kind is followed by a name
		}
		switch known, fits := objectBelow(key[slash+1:]); {
		case fits:
			return string(key[:slash]), part, true, true
		case known && !ok && wellKnown(part):
			prefix, kind, ok = string(key[:slash]), part, true
		}
		slash += 1 + len(part)
	}
	return prefix, kind, false, ok
}

// objectBelow reports whether rest begins with a resource that is known, and
// whether as many parts follow as an object of it has.
func objectBelow(rest []byte) (known, fits bool) {
	first, _ := firstPart(rest)
	below := rest[min(len(first)+1, len(rest)):]
	if i := builtInAt(first); i >= 0 {
		return true, parts(below) == objectParts(i)
	}
	second, deeper := firstPart(below)
	if i := builtInAt(first + "/" + second); deeper && i >= 0 {
		return true, parts(below[len(second)+1:]) == objectParts(i)
	}
	n := parts(below)
	return wellKnown(first), wellKnown(first) && n >= 1 && n <= 2 // OpenShift's, and API servers' own bookkeeping
}

// IsBuiltInObject reports whether key is that of an object under prefix, of a
// resource that every API server has.
func IsBuiltInObject(prefix string, key []byte) bool {
	if !hasDir(key, prefix) {
		return false
	}
	_, fits := objectBelow(key[len(prefix)+1:])
	return fits
}

// objectParts is how many parts a key has behind the path of a built-in resource.
func objectParts(i int) int {
	if builtIns[i].Namespaced {
		return 2
	}
	return 1
}

// parts counts the parts of a key, 0 where one is empty.
func parts(key []byte) int {
	if len(key) == 0 || key[0] == '/' || key[len(key)-1] == '/' || bytes.Contains(key, []byte("//")) {
		return 0
	}
	return 1 + bytes.Count(key, []byte("/"))
}

func hasDir(key []byte, dir string) bool {
	return len(key) > len(dir) && string(key[:len(dir)]) == dir && key[len(dir)] == '/'
}
