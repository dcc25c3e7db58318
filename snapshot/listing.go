package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/etcdkit/etcdkit/internal/store"
)

// Of a repository with thousands of backups only the newest are read, in batches.
const (
	readers    = 8 // manifests that are read at once
	firstBatch = 4
	leastBatch = 2 // where every request counts
)

// listing is a repository's objects, sorted out.
type listing struct {
	repo            store.Store
	manifests, seen []object                  // oldest first
	records         map[string][]string       // keys, by base name
	signatures      map[string][]store.Object // by the base name of what they sign
	keys            map[string]bool           // of everything that this program wrote
	data            map[string]store.Object   // by key
}

func readListing(ctx context.Context, repo store.Store, cluster string) (*listing, error) {
	if cluster != "" {
		cluster += "/"
	}
	objects, err := repo.List(ctx, cluster)
	if err != nil {
		return nil, err
	}
	return newListing(repo, objects), nil
}

func newListing(repo store.Store, objects []store.Object) *listing {
	l := &listing{repo: repo, records: map[string][]string{}, signatures: map[string][]store.Object{}, keys: map[string]bool{}, data: map[string]store.Object{}}
	for _, o := range objects {
		name, ok := parseKey(o.Key)
		l.keys[o.Key] = ok
		switch {
		case !ok:
		case name.kind == kindManifest:
			l.manifests = append(l.manifests, name)
		case name.kind == kindSeen:
			l.seen = append(l.seen, name)
		case name.kind == kindVerified:
			l.records[name.base] = append(l.records[name.base], o.Key)
		case name.kind == kindSignature:
			l.signatures[name.base] = append(l.signatures[name.base], o)
		default:
			l.data[o.Key] = o
		}
	}
	for _, named := range [][]object{l.manifests, l.seen} {
		slices.SortStableFunc(named, func(a, b object) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.base, b.base)) })
	}
	return l
}

// of returns the part of a listing that is of one cluster; "" means all.
func (l *listing) of(cluster string) *listing {
	if cluster == "" {
		return l
	}
	other := func(o object) bool { return o.cluster != cluster }
	part := *l
	part.manifests = slices.DeleteFunc(slices.Clone(l.manifests), other)
	part.seen = slices.DeleteFunc(slices.Clone(l.seen), other)
	return &part
}

// recent lists a cluster again, from its newest backups in this listing on: what
// other runs have stored meanwhile is among them.
func (l *listing) recent(ctx context.Context, cluster string) (*listing, error) {
	mine, after := l.of(cluster).manifests, ""
	if len(mine) > readers {
		after = cluster + "/" + mine[len(mine)-readers-1].base
	}
	objects, err := l.repo.ListAfter(ctx, cluster+"/", after)
	if err != nil {
		return nil, err
	}
	return newListing(l.repo, objects), nil
}

// clusters returns the ids of the clusters that there are backups of, sorted.
func (l *listing) clusters() []string {
	ids := map[string]bool{}
	for _, o := range l.manifests {
		ids[o.cluster] = true
	}
	return sorted(ids)
}

// times returns when the backups were taken, by their names, but for one of them.
func (l *listing) times(except string) []time.Time {
	var times []time.Time
	for _, o := range l.manifests {
		if o.base != except {
			times = append(times, o.at)
		}
	}
	return times
}

// backups reads all backups, oldest first.
func (l *listing) backups(ctx context.Context) ([]*Backup, error) { return l.read(ctx, l.manifests) }

// newest reads backups from the newest back, so many at first, until those read so far, oldest
// first, are enough. Where not one of several can be read, it goes no further:
// whoever asks learns that from them.
func (l *listing) newest(ctx context.Context, first int, enough func([]*Backup) bool) (all []*Backup, err error) {
	batch := first
	for end := len(l.manifests); end > 0; end -= batch {
		if end < len(l.manifests) {
			batch = readers
		}
		part, err := l.read(ctx, l.manifests[max(0, end-batch):end])
		if err != nil {
			return nil, err
		}
		all = append(part, all...)
		unread := !slices.ContainsFunc(part, func(b *Backup) bool { return !b.unread })
		if enough(all) || unread && len(part) > 0 {
			break
		}
	}
	sortByAge(all)
	return all, nil
}

func sortByAge(all []*Backup) {
	slices.SortStableFunc(all, func(a, b *Backup) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Name, b.Name))
	})
}

// read reads the backups of some manifests, oldest first.
func (l *listing) read(ctx context.Context, manifests []object) ([]*Backup, error) {
	all := make([]*Backup, len(manifests))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(readers)
	for i, o := range manifests {
		g.Go(func() (err error) {
			all[i], err = l.backup(gctx, o)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(b *Backup) bool { return b == nil })
	sortByAge(all)
	return all, nil
}

// errListed tells of an object that a listing shows and that cannot be had.
var errListed = errors.New("it is listed, but the store does not give it")

// manifest reads a manifest; nil if it was deleted since it was listed.
func (l *listing) manifest(ctx context.Context, o object) ([]byte, error) {
	key := o.cluster + "/" + o.base + manifestSuffix
	raw, err := readSmall(ctx, l.repo, key)
	if !errors.Is(err, store.ErrNotExist) {
		return raw, err
	}
	again, listErr := l.repo.List(ctx, key)
	if listErr == nil && len(again) == 0 {
		return nil, nil
	}
	if listErr == nil {
		raw, err = readSmall(ctx, l.repo, key)
	}
	if errors.Is(err, store.ErrNotExist) {
		err = errListed
	}
	return raw, errors.Join(listErr, err)
}

// signaturesOf returns the keys of the signatures of what has that name.
func (l *listing) signaturesOf(o object) (keys []string) {
	for _, signature := range l.signatures[o.base] {
		keys = append(keys, signature.Key)
	}
	return keys
}

// backup reads one backup; nil if it was deleted meanwhile.
func (l *listing) backup(ctx context.Context, o object) (*Backup, error) {
	raw, err := l.manifest(ctx, o)
	if err == nil && raw == nil {
		return nil, nil
	}
	if err != nil && fatal(ctx, err) {
		return nil, err
	}
	b := &Backup{records: l.records[o.base], signatures: l.signaturesOf(o), unread: err != nil && !errors.Is(err, ErrManifest)}
	var m *Manifest
	if err == nil {
		m, err = parseManifest(raw)
	}
	if err == nil && (m.Name != o.base || m.ClusterID != o.cluster ||
		!strings.HasPrefix(m.Data, m.Name+".") || strings.Contains(m.Data, "/")) {
		err = fmt.Errorf("%w: it belongs to another backup", ErrManifest)
	}
	if err != nil {
		b.Manifest = Manifest{Name: o.base, ClusterID: o.cluster, CreatedAt: o.at, Writer: Writer{Run: o.run}}
		b.Problem = err.Error()
		return b, nil
	}
	b.Manifest = *m
	if err := l.lookAtData(ctx, b); err != nil {
		return nil, err
	}
	verifications, unread, err := readVerifications(ctx, l.repo, b.records)
	b.Verified, b.unreadRecord = standing(verifications), unread
	return b, err
}

// lookAtData notes what is wrong with a backup's data object. What the listing
// does not show, or shows otherwise, is asked for itself.
func (l *listing) lookAtData(ctx context.Context, b *Backup) error {
	data, listed := l.data[b.key(b.Data)]
	if listed && data.Size == b.StoredBytes {
		return nil
	}
	data, err := l.repo.Stat(ctx, b.key(b.Data))
	switch {
	case errors.Is(err, store.ErrNotExist):
		b.Problem = "its data object is missing"
	case err != nil && fatal(ctx, err):
		return err
	case err != nil:
		b.Problem, b.unread = err.Error(), true
	case data.Size != b.StoredBytes:
		b.Problem = fmt.Sprintf("its data object has %d bytes, the manifest says %d", data.Size, b.StoredBytes)
	}
	return nil
}

// fatal reports whether an object that could not be read means that none can
// be. What is wrong with one alone must not stand in the way of the others.
func fatal(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, store.ErrUnreachable) || errors.Is(err, store.ErrDenied)
}
