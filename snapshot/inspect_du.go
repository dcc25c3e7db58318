package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/etcdkit/etcdkit/internal/kube"
	"github.com/etcdkit/etcdkit/internal/mvccdb"
)

// UsageOptions says how to add up what a file holds.
type UsageOptions struct {
	Depth    int    // parts of a key, between slashes, that make a prefix; 0 means 2
	Top      int    // keys to name; 0 means 10
	Prefix   []byte // only keys that begin so
	Progress func(done, total int64)
}

const (
	defaultDepth = 2
	defaultTop   = 10
)

// Usage tells what uses the space in a file.
type Usage struct {
	Total      Use
	Kubernetes string // Kubernetes' prefix, "" where there is none
	Prefixes   []Use
	Resources  []Use // of Kubernetes, by resource
	Namespaces []Use // of Kubernetes, by namespace; "" is what has none
	Largest    []KeyUse
	Revised    []KeyUse // the most revised ones
}

// Use is what the keys of a group use. History is what a compaction and a
// defragmentation would free.
type Use struct {
	Name         string
	Keys         int   // live
	Bytes        int64 // of the live keys and their values
	Revisions    int   // all, with the live ones
	HistoryBytes int64 // of older revisions and deletions
}

// KeyUse is what one key uses.
type KeyUse struct {
	Key       string
	Live      bool
	Bytes     int64 // of its last revision
	Revisions int
}

// Usage reads the file and adds up. It keeps some 30 bytes a key in memory.
func (f *File) Usage(ctx context.Context, opts UsageOptions) (*Usage, error) {
	opts.Depth = cmp.Or(opts.Depth, defaultDepth)
	opts.Top = cmp.Or(opts.Top, defaultTop)
	prefix, err := f.kubernetesPrefix(ctx)
	if err != nil {
		return nil, err
	}
	a := &adder{opts: opts, kube: prefix, keys: mvccdb.NewKeys(), groups: make(map[group]*Use)}
	scan := mvccdb.Options{Buckets: []string{mvccdb.KeyBucket}, Damage: f.beyondMeta, Progress: opts.Progress}
	if err := mvccdb.Scan(ctx, f.DB, scan, a.digest, a.take); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	u := a.usage()
	return u, f.name(ctx, a, u, scan)
}

// errFound ends a scan that has seen enough.
var errFound = errors.New("found")

// kubernetesPrefix looks for Kubernetes' prefix, as far into the file as needed.
// Batches count in file order, so that the answer is always the same.
func (f *File) kubernetesPrefix(ctx context.Context) (string, error) {
	var all kube.Finder
	opts := mvccdb.Options{Buckets: []string{mvccdb.KeyBucket}, Damage: f.beyondMeta}
	each := func(b *mvccdb.Batch) (*kube.Finder, error) { return findPrefixes(b), nil }
	err := mvccdb.Scan(ctx, f.DB, opts, each, func(found *kube.Finder) error {
		all.Merge(found)
		if len(all.Prefixes()) > 0 {
			return errFound
		}
		return nil
	})
	if err != nil && !errors.Is(err, errFound) {
		return "", fmt.Errorf("%s: %w", f.Path, err)
	}
	if found := all.Prefixes(); len(found) > 0 {
		return found[0], nil
	}
	return "", nil
}

// group names a sum: a prefix, a resource or a namespace.
type group struct {
	kind groupKind
	name string
}

type groupKind int

const (
	byPrefix groupKind = iota
	byResource
	byNamespace
	groupKinds
)

// adder adds up revisions in order.
type adder struct {
	opts   UsageOptions
	kube   string
	keys   *mvccdb.Keys // value: place in last, plus one
	last   []lastUse
	groups map[group]*Use
	names  []*[groupKinds]*Use // what lastUse.where points into
	places map[[groupKinds]string]uint32
	total  Use
}

// lastUse is the last revision seen of a key.
type lastUse struct {
	where     uint32 // in adder.names
	bytes     uint32
	revisions uint32
	live      bool
}

// use is what one revision uses.
type use struct {
	id    mvccdb.KeyID
	where int // in useBatch.names
	bytes uint32
	gone  bool
}

// useBatch is what one batch uses, with the groups named once.
type useBatch struct {
	names [][groupKinds]string
	uses  []use
}

func (a *adder) digest(b *mvccdb.Batch) (*useBatch, error) {
	d := &useBatch{uses: make([]use, 0, len(b.Records))}
	places := make(map[[groupKinds]string]int)
	for i := range b.Records {
		r := &b.Records[i]
		if !bytes.HasPrefix(r.Key, a.opts.Prefix) {
			continue
		}
		names := a.groupsOf(r.Key)
		where, ok := places[names]
		if !ok {
			where = len(d.names)
			places[names] = where
			d.names = append(d.names, names)
		}
		d.uses = append(d.uses, use{id: a.keys.ID(r.Key), where: where, bytes: uint32(len(r.Key) + len(r.Value)), gone: r.Tombstone})
	}
	return d, nil
}

// groupsOf returns the names of the groups that a key is in.
func (a *adder) groupsOf(key []byte) (names [groupKinds]string) {
	names[byPrefix] = prefixOf(key, a.opts.Depth)
	if a.kube == "" {
		return names
	}
	if k, ok := kube.ParseKey(a.kube, key); ok {
		names[byResource], names[byNamespace] = k.GroupResource(), k.Namespace
	}
	return names
}

// prefixOf returns the first parts of a key, with the slash after them.
func prefixOf(key []byte, depth int) string {
	end := 0
	for n := 0; n < depth; n++ {
		from := end
		if from == 0 && len(key) > 0 && key[0] == '/' {
			from = 1
		}
		slash := bytes.IndexByte(key[from:], '/')
		if slash < 0 {
			break
		}
		end = from + slash + 1
	}
	return string(key[:end])
}

func (a *adder) take(d *useBatch) error {
	where := make([]uint32, len(d.names))
	for i, names := range d.names {
		where[i] = a.place(names)
	}
	for _, u := range d.uses {
		a.add(u, where[u.where])
	}
	return nil
}

// place returns the number of a combination of groups.
func (a *adder) place(names [groupKinds]string) uint32 {
	if a.places == nil {
		a.places = make(map[[groupKinds]string]uint32)
	}
	if at, ok := a.places[names]; ok {
		return at
	}
	sums := new([groupKinds]*Use)
	for kind := range groupKinds {
		if kind != byPrefix && names[byResource] == "" {
			continue // no object of Kubernetes
		}
		g := group{kind, names[kind]}
		if a.groups[g] == nil {
			a.groups[g] = &Use{Name: names[kind]}
		}
		sums[kind] = a.groups[g]
	}
	at := uint32(len(a.names))
	a.names, a.places[names] = append(a.names, sums), at
	return at
}

// add adds a revision: what was the key's last one becomes history.
func (a *adder) add(u use, where uint32) {
	value, known := a.keys.Get(u.id)
	if !known {
		a.last = append(a.last, lastUse{where: where})
		value = uint32(len(a.last))
		a.keys.Set(u.id, value)
	}
	l := &a.last[value-1]
	if l.live {
		a.each(where, func(s *Use) { s.Keys--; s.Bytes -= int64(l.bytes); s.HistoryBytes += int64(l.bytes) })
	}
	l.live, l.bytes = !u.gone, u.bytes
	l.revisions++
	a.each(where, func(s *Use) {
		s.Revisions++
		if u.gone {
			s.HistoryBytes += int64(u.bytes)
			return
		}
		s.Keys++
		s.Bytes += int64(u.bytes)
	})
}

// each calls fn for every sum that a revision belongs to.
func (a *adder) each(where uint32, fn func(*Use)) {
	fn(&a.total)
	for _, s := range a.names[where] {
		if s != nil {
			fn(s)
		}
	}
}

// usage sorts the sums, the largest first.
func (a *adder) usage() *Usage {
	u := &Usage{Total: a.total, Kubernetes: a.kube}
	lists := [groupKinds]*[]Use{&u.Prefixes, &u.Resources, &u.Namespaces}
	for g, s := range a.groups {
		*lists[g.kind] = append(*lists[g.kind], *s)
	}
	for _, list := range lists {
		slices.SortFunc(*list, func(x, y Use) int {
			return cmp.Or(cmp.Compare(y.Bytes+y.HistoryBytes, x.Bytes+x.HistoryBytes), strings.Compare(x.Name, y.Name))
		})
	}
	return u
}

// name finds the names of the keys that stand out, by reading the file again:
// until now there were only their hashes.
func (f *File) name(ctx context.Context, a *adder, u *Usage, scan mvccdb.Options) error {
	largest := a.top(func(l lastUse) uint32 {
		if !l.live {
			return 0
		}
		return l.bytes
	})
	revised := a.top(func(l lastUse) uint32 { return l.revisions })
	names := make(map[uint32]string)
	err := mvccdb.Scan(ctx, f.DB, scan, func(b *mvccdb.Batch) (map[uint32]string, error) {
		found := make(map[uint32]string)
		for i := range b.Records {
			key := b.Records[i].Key
			if value, known := a.keys.Get(a.keys.ID(key)); known && (largest[value-1] || revised[value-1]) {
				found[value-1] = string(key)
			}
		}
		return found, nil
	}, func(found map[uint32]string) error {
		for at, key := range found {
			names[at] = key
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	for at, key := range names {
		l := a.last[at]
		k := KeyUse{Key: key, Live: l.live, Bytes: int64(l.bytes), Revisions: int(l.revisions)}
		if largest[at] {
			u.Largest = append(u.Largest, k)
		}
		if revised[at] {
			u.Revised = append(u.Revised, k)
		}
	}
	slices.SortFunc(u.Largest, func(x, y KeyUse) int { return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), strings.Compare(x.Key, y.Key)) })
	slices.SortFunc(u.Revised, func(x, y KeyUse) int {
		return cmp.Or(cmp.Compare(y.Revisions, x.Revisions), strings.Compare(x.Key, y.Key))
	})
	return nil
}

// top returns the places of the keys with the most of something.
func (a *adder) top(of func(lastUse) uint32) map[uint32]bool {
	var best []uint32
	for at := range a.last {
		amount := of(a.last[at])
		if amount == 0 || (len(best) == a.opts.Top && amount <= of(a.last[best[len(best)-1]])) {
			continue
		}
		i, _ := slices.BinarySearchFunc(best, amount, func(at, amount uint32) int { return cmp.Compare(amount, of(a.last[at])) })
		best = slices.Insert(best, i, uint32(at))
		best = best[:min(len(best), a.opts.Top)]
	}
	set := make(map[uint32]bool, len(best))
	for _, at := range best {
		set[at] = true
	}
	return set
}
