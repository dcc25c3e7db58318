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
	certain candidates[struct{}]        // prefixes with a value that only an API server writes
	likely  candidates[map[string]bool] // kinds of objects in JSON, which other programs write as well
	last    string                      // a certain prefix: most keys in a row share it
	isLast  bool
}

// Add shows the finder one stored key with its value, of which the first 512
// bytes are enough.
func (f *Finder) Add(key, value []byte) {
	if f.isLast && hasDir(key, f.last) {
		return // whatever it says belongs to a prefix that is certain already
	}
	certain := isStorage(value)
	if !certain && !isStorageJSON(value) {
		return // other programs have keys with such words in them
	}
	prefix, kind, ok := splitAtKind(key)
	switch {
	case !ok:
	case certain:
		f.certain.at(prefix)
		f.last, f.isLast = prefix, true
	default:
		kinds := f.likely.at(prefix)
		if *kinds == nil {
			*kinds = make(map[string]bool)
		}
		(*kinds)[kind] = true
	}
}

// Merge adds everything that was shown to other.
func (f *Finder) Merge(other *Finder) {
	for prefix := range other.certain.all {
		f.certain.at(prefix)
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
	return outermost(found)
}

// outermost sorts prefixes and drops those below another one: a custom
// resource, or a namespace, may be called "secrets".
func outermost(prefixes []string) []string {
	slices.Sort(prefixes)
	var outer []string
	for _, p := range slices.Compact(prefixes) {
		below := func(o string) bool { return hasDir([]byte(p), o) }
		if !slices.ContainsFunc(outer, below) {
			outer = append(outer, p)
		}
	}
	return outer
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

// splitAtKind cuts key before its first part that is a well-known resource.
// Prefixes begin with a slash and have at most maxParts parts.
func splitAtKind(key []byte) (prefix, kind string, ok bool) {
	if len(key) == 0 || key[0] != '/' {
		return "", "", false
	}
	slash := 0
	for range maxParts + 1 {
		end := bytes.IndexByte(key[slash+1:], '/')
		if end < 0 {
			return "", "", false // a kind is followed by a name
		}
		if part := key[slash+1 : slash+1+end]; wellKnown(string(part)) {
			return string(key[:slash]), string(part), true
		}
		slash += 1 + end
	}
	return "", "", false
}

func hasDir(key []byte, dir string) bool {
	return len(key) > len(dir) && string(key[:len(dir)]) == dir && key[len(dir)] == '/'
}
