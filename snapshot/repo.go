package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/store"
)

// readers is how many manifests are read at once.
const readers = 8

// Causes of a backup that was not found.
var (
	ErrNoBackup  = errors.New("no such backup")
	ErrAmbiguous = errors.New("more than one could be meant")
)

// Backup is a backup as its repository shows it.
type Backup struct {
	Manifest
	// Problem says why the backup cannot be used, "" if nothing is known.
	Problem string `json:"problem,omitempty"`
	// Verified is the verification that counts, see standing.
	Verified *Verification `json:"verified,omitempty"`

	records []string // keys of its verification records
	unread  bool     // the manifest could not be read, so it may well be good
}

// Good reports whether the backup can be relied on, as far as is known: it was
// taken with quorum, its data is there, and no verification that still stands
// found it damaged.
func (b *Backup) Good() bool {
	return b.Quorum && b.Problem == "" && (b.Verified == nil || b.Verified.Result != ResultBad)
}

func (b *Backup) key(name string) string { return b.ClusterID + "/" + name }

// listing is a repository's objects, sorted out.
type listing struct {
	manifests, seen []object
	records         map[string][]string     // keys, by base name
	data            map[string]store.Object // by key
}

func readListing(ctx context.Context, repo store.Store, cluster string) (*listing, error) {
	if cluster != "" {
		cluster += "/"
	}
	objects, err := repo.List(ctx, cluster)
	if err != nil {
		return nil, err
	}
	l := &listing{records: map[string][]string{}, data: map[string]store.Object{}}
	for _, o := range objects {
		name, ok := parseKey(o.Key)
		switch {
		case !ok:
		case name.kind == kindManifest:
			l.manifests = append(l.manifests, name)
		case name.kind == kindSeen:
			l.seen = append(l.seen, name)
		case name.kind == kindVerified:
			l.records[name.base] = append(l.records[name.base], o.Key)
		default:
			l.data[o.Key] = o
		}
	}
	return l, nil
}

// List returns the backups of a repository, oldest first. With a cluster id
// only that cluster's.
func List(ctx context.Context, repo store.Store, cluster string) ([]*Backup, error) {
	l, err := readListing(ctx, repo, cluster)
	if err != nil {
		return nil, err
	}
	return l.backups(ctx, repo)
}

// Names returns the names of a repository's backups, newest first. It reads no
// manifest, so it is fast and knows nothing more.
func Names(ctx context.Context, repo store.Store) ([]string, error) {
	l, err := readListing(ctx, repo, "")
	if err != nil {
		return nil, err
	}
	names := make([]string, len(l.manifests))
	for i, o := range l.manifests {
		names[i] = o.base
	}
	slices.Sort(names) // they begin with the time
	slices.Reverse(names)
	return names, nil
}

func (l *listing) backups(ctx context.Context, repo store.Store) ([]*Backup, error) {
	all := make([]*Backup, len(l.manifests))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(readers)
	for i, o := range l.manifests {
		g.Go(func() (err error) {
			all[i], err = l.backup(gctx, repo, o)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(b *Backup) bool { return b == nil })
	slices.SortStableFunc(all, func(a, b *Backup) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

// backup reads one backup; nil if it was deleted meanwhile.
func (l *listing) backup(ctx context.Context, repo store.Store, o object) (*Backup, error) {
	raw, err := readSmall(ctx, repo, o.cluster+"/"+o.base+manifestSuffix)
	if errors.Is(err, store.ErrNotExist) {
		return nil, nil
	}
	if err != nil && fatal(ctx, err) {
		return nil, err
	}
	b := &Backup{records: l.records[o.base], unread: err != nil && !errors.Is(err, ErrManifest)}
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
	switch data, ok := l.data[b.key(m.Data)]; {
	case !ok:
		b.Problem = "its data object is missing"
	case data.Size != m.StoredBytes:
		b.Problem = fmt.Sprintf("its data object has %d bytes, the manifest says %d", data.Size, m.StoredBytes)
	}
	verifications, err := readVerifications(ctx, repo, b.records)
	b.Verified = standing(verifications)
	return b, err
}

// fatal reports whether an object that could not be read means that none can
// be. What is wrong with one alone must not stand in the way of the others.
func fatal(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, store.ErrUnreachable) || errors.Is(err, store.ErrDenied)
}

// Clusters returns the ids of the clusters that backups are of, sorted.
func Clusters(all []*Backup) []string {
	ids := map[string]bool{}
	for _, b := range all {
		ids[b.ClusterID] = true
	}
	return sorted(ids)
}

func sorted(set map[string]bool) []string {
	var s []string
	for v := range set {
		s = append(s, v)
	}
	slices.Sort(s)
	return s
}

// Lineages returns the lineages of backups, the newest first.
func Lineages(all []*Backup) []string {
	var names []string
	for _, b := range slices.Backward(all) {
		if b.Lineage != "" && b.Quorum && !slices.Contains(names, b.Lineage) {
			names = append(names, b.Lineage)
		}
	}
	return names
}

// Latest returns the newest good backup of the newest lineage among backups
// sorted by age. Without anyQuorum those without quorum do not count. Inside a
// lineage the revision tells which is the newest, whatever clocks said.
func Latest(all []*Backup, anyQuorum bool) (*Backup, error) {
	if clusters := Clusters(all); len(clusters) > 1 {
		return nil, hint.With(fmt.Errorf("find the latest backup: %w: the repository holds clusters %s", ErrAmbiguous, strings.Join(clusters, ", ")),
			"name the cluster, as in REPO/%s/latest", clusters[0])
	}
	lineages := Lineages(all)
	var latest *Backup
	for _, b := range slices.Backward(all) {
		if len(lineages) > 0 && b.Lineage != lineages[0] {
			continue
		}
		usable := *b
		usable.Quorum = usable.Quorum || anyQuorum
		if usable.Good() && (latest == nil || len(lineages) > 0 && b.earliest() > latest.earliest()) {
			latest = b
		}
	}
	if latest != nil {
		return latest, nil
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("find the latest backup: %w: there is none", ErrNoBackup)
	}
	return nil, fmt.Errorf("find the latest backup: %w: none of %d is good", ErrNoBackup, len(all))
}

// Find returns the backup that name means: latest, or a backup's name with or
// without its ending.
func Find(all []*Backup, name string, anyQuorum bool) (*Backup, error) {
	if name == "latest" {
		return Latest(all, anyQuorum)
	}
	base, _, _ := strings.Cut(name, ".")
	for _, b := range all {
		if b.Name == base {
			return b, nil
		}
	}
	return nil, hint.With(fmt.Errorf("find backup %s: %w", name, ErrNoBackup), "see the names with: etcdkit snapshot list REPO")
}
