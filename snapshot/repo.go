package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/store"
)

// Causes of a backup that was not found.
var (
	ErrNoBackup  = errors.New("no such backup")
	ErrAmbiguous = errors.New("more than one could be meant")
	// ErrYounger tells of a younger backup that cannot be used, so that the latest
	// would silently be an older one.
	ErrYounger = errors.New("a younger backup cannot be used")
)

// Backup is a backup as its repository shows it.
type Backup struct {
	Manifest
	// Problem says why the backup cannot be used, "" if nothing is known.
	Problem string `json:"problem,omitempty"`
	// Verified is the verification that counts, see standing.
	Verified *Verification `json:"verified,omitempty"`

	records    []string // keys of its verification records
	signatures []string // keys of the signatures of its manifest and its records
	unread     bool     // it could not be looked at, so it may well be good
	// unreadRecord is why a verification of it could not be read, which may have
	// found it damaged.
	unreadRecord error
	// supposed tells that only the name was looked at.
	supposed bool
}

// Good reports whether the backup can be relied on, as far as is known: it was
// taken with quorum, its data is there, and no verification that still stands
// found it damaged.
func (b *Backup) Good() bool {
	return b.Quorum && b.Problem == "" && (b.Verified == nil || b.Verified.Result != ResultBad)
}

// Proven reports whether somebody looked into a good backup: when it was taken,
// or in a verification of its database.
func (b *Backup) Proven() bool {
	return b.Good() && (b.supposed || b.Examined || b.Keys != nil || b.verifiedDeep())
}

// verifiedDeep reports whether a verification read the backup's database.
func (b *Backup) verifiedDeep() bool {
	v := b.Verified
	return v != nil && v.Result == ResultOK && v.Level.depth() >= LevelDecoded.depth()
}

// Unread says why the backup, or a verification of it, could not be looked at; ""
// if it was.
func (b *Backup) Unread() string {
	if !b.unread && b.unreadRecord == nil {
		return ""
	}
	return b.unreadBecause()
}

func (b *Backup) unreadBecause() string {
	if b.unreadRecord != nil {
		return b.unreadRecord.Error()
	}
	return b.Problem
}

func (b *Backup) key(name string) string { return b.ClusterID + "/" + name }

// List returns the backups of a repository, oldest first. With a cluster id
// only that cluster's.
func List(ctx context.Context, repo store.Store, cluster string) ([]*Backup, error) {
	l, err := readListing(ctx, repo, cluster)
	if err != nil {
		return nil, err
	}
	return l.backups(ctx)
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
	slices.Reverse(names)
	return names, nil
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
// lineage the revision tells which is the newest, whatever clocks said. The
// error is ErrYounger, beside the backup, where a younger one cannot be used.
func Latest(all []*Backup, anyQuorum bool) (*Backup, error) {
	latest, err := newestGood(all, anyQuorum)
	younger := unusable(all, latest)
	switch {
	case errors.Is(err, ErrAmbiguous), len(younger) == 0:
		return latest, err
	case err != nil:
		return nil, fmt.Errorf("%w: %s: %s", err, younger[0].Name, younger[0].Problem)
	}
	return latest, hint.With(fmt.Errorf("find the latest backup: %w: %s: %s", ErrYounger, younger[0].Name, younger[0].Problem),
		"the newest that can be used is %s: name it, or restore it with --older-ok", latest.Name)
}

// unusable returns the backups that have a problem and may be younger than the
// latest, or all that have one where there is no latest; the youngest first.
func unusable(all []*Backup, latest *Backup) (younger []*Backup) {
	for _, b := range slices.Backward(all) {
		switch {
		case b.Problem == "":
		case latest == nil:
			younger = append(younger, b)
		case b.ClusterID != latest.ClusterID:
		case b.Schema == 0 && b.CreatedAt.Before(latest.CreatedAt.Truncate(time.Second)): // a name tells the second
		case b.Schema != 0 && !b.CreatedAt.After(latest.CreatedAt):
		case b.Schema != 0 && (!b.Quorum || b.Lineage == latest.Lineage && b.latest() < latest.earliest()):
			// Its manifest says that it is not the one looked for.
		default:
			younger = append(younger, b)
		}
	}
	return younger
}

// newestGood is Latest without regard to what cannot be used.
func newestGood(all []*Backup, anyQuorum bool) (*Backup, error) {
	if clusters := Clusters(all); len(clusters) > 1 {
		return nil, ambiguous(clusters)
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
	err := fmt.Errorf("find the latest backup: %w: none of %d is good", ErrNoBackup, len(all))
	if anyQuorum {
		return nil, err
	}
	if _, withoutQuorum := newestGood(all, true); withoutQuorum == nil {
		return nil, hint.With(err, "one that was taken without quorum, and may be old, restores with --any-quorum")
	}
	return nil, err
}

func ambiguous(clusters []string) error {
	return hint.With(fmt.Errorf("find the latest backup: %w: the repository holds clusters %s", ErrAmbiguous, strings.Join(clusters, ", ")),
		"name the cluster, as in REPO/%s/latest", clusters[0])
}

// isLatest reports whether a name means the latest backup.
func isLatest(name string) bool { return name == "latest" }

// Choice says which backup is wanted.
type Choice struct {
	Cluster   string // "" means the only one
	Name      string // of a backup, or latest
	AnyQuorum bool   // latest may be a backup that was taken without quorum
	OlderOK   bool   // latest may be older than one that cannot be used
}

// Choose returns the backup that a choice means, and those that it looked at to
// find it, oldest first: no more than it needs.
func Choose(ctx context.Context, repo store.Store, c Choice) (*Backup, []*Backup, error) {
	l, err := readListing(ctx, repo, c.Cluster)
	if err != nil {
		return nil, nil, err
	}
	return l.choose(ctx, c)
}

func (l *listing) choose(ctx context.Context, c Choice) (*Backup, []*Backup, error) {
	if !isLatest(c.Name) {
		base, _, _ := strings.Cut(c.Name, ".")
		named := slices.DeleteFunc(slices.Clone(l.manifests), func(o object) bool { return o.base != base })
		all, err := l.read(ctx, named)
		if err != nil {
			return nil, nil, err
		}
		b, err := Find(all, c.Name, c.AnyQuorum)
		return b, all, err
	}
	if clusters := l.clusters(); len(clusters) > 1 {
		return nil, nil, ambiguous(clusters)
	}
	all, err := l.newest(ctx, firstBatch, func(all []*Backup) bool {
		_, err := newestGood(all, c.AnyQuorum)
		return err == nil
	})
	if err != nil {
		return nil, nil, err
	}
	b, err := Latest(all, c.AnyQuorum)
	err = nameWithoutQuorum(all, err)
	if errors.Is(err, ErrYounger) && c.OlderOK {
		err = nil
	}
	return b, all, err
}

// nameWithoutQuorum adds to an error that no backup is good the one that is there
// all the same, taken from a member without quorum.
func nameWithoutQuorum(all []*Backup, err error) error {
	if !errors.Is(err, ErrNoBackup) {
		return err
	}
	old, _ := Latest(all, true)
	if old == nil {
		return err
	}
	return hint.With(fmt.Errorf("%w; %s was taken from a member without quorum and may be old", err, old.Name), "--any-quorum takes it")
}

// Find returns the backup that name means: latest, or a backup's name with or
// without its ending.
func Find(all []*Backup, name string, anyQuorum bool) (*Backup, error) {
	if isLatest(name) {
		b, err := Latest(all, anyQuorum)
		return b, nameWithoutQuorum(all, err)
	}
	base, _, _ := strings.Cut(name, ".")
	for _, b := range all {
		if b.Name == base {
			return b, nil
		}
	}
	return nil, hint.With(fmt.Errorf("find backup %s: %w", name, ErrNoBackup), "see the names with: etcdkit snapshot list REPO")
}
