package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/mvccdb"
	"github.com/etcdkit/etcdkit/internal/regular"
	"github.com/etcdkit/etcdkit/internal/store"
)

// SaveTo writes a snapshot, encoded as opts say, to w. If the member breaks
// after the first byte went out, nothing can take it back: that is the end.
func SaveTo(ctx context.Context, src Source, w io.Writer, opts SaveOptions) (*Saved, error) {
	opts, err := opts.plan()
	if err != nil {
		return nil, err
	}
	written := newCounted(nil)
	return src.take(ctx, opts, newRun(), sink{
		put: func(_ context.Context, _ *Manifest, r io.Reader, _ int64) error {
			written = newCounted(r)
			return copyAll(w, written)
		},
		again: func() bool { return written.n == 0 },
	})
}

// Seen is the record of a run that found nothing changed.
type Seen struct {
	At       time.Time `json:"at"`
	Backup   string    `json:"backup"`
	Revision int64     `json:"revision"`
	Endpoint string    `json:"endpoint"`
}

// Save takes a snapshot into a repository: the data, then the manifest, then
// the locks. Before, it removes what dead runs left there.
func Save(ctx context.Context, src Source, repo store.Store, opts SaveOptions) (*Saved, error) {
	opts, err := opts.plan()
	if err != nil {
		return nil, err
	}
	_, folder := folderOf(repo)
	opts.examineFile = folder && opts.plain()
	k := &keeper{repo: repo, opts: opts}
	if k.run, err = opts.Runs.start(newRun(), runFile{Repository: placeOf(repo)}); err != nil {
		k.warn(err)
	}
	// No stream is opened for a store that is not there.
	if err := k.clean(ctx); err != nil {
		k.run.end()
		return nil, fmt.Errorf("save snapshot: %w", err)
	}
	saved, err := src.take(ctx, opts, k.run.id, k.sink(ctx))
	if saved == nil {
		saved = &Saved{}
	}
	if k.again && err == nil {
		if err := k.clean(ctx); err != nil {
			k.warn(err) // the backup is there all the same
		}
	}
	saved.Cleaned = k.cleaned
	defer func() { saved.Warnings = append(k.warnings, saved.Warnings...) }()
	switch {
	case err != nil:
	case saved.Unchanged:
		err = k.seen(ctx, saved.Manifest)
	default:
		err = k.keep(ctx, saved)
	}
	if err != nil {
		k.run.abandon()
		return saved, err
	}
	k.run.end()
	return saved, nil
}

// keeper puts one backup into a repository.
type keeper struct {
	repo     store.Store
	opts     SaveOptions
	run      *run
	warnings []string
	at       *candidate // that served, or would have
	cleaned  []Leftover
	listing  *listing // as it was at the beginning, nil if it could not be had
	earlier  earlier
	again    bool // a run was killed lately: the store may still have been at its last request
}

// clean removes what dead runs left. That it cannot is no reason not to save,
// unless the store cannot be reached at all.
func (k *keeper) clean(ctx context.Context) error {
	l, err := readListing(ctx, k.repo, "")
	if err == nil {
		k.listing = l
		var cleaned []Leftover
		cleaned, k.again, err = l.clean(ctx, CleanOptions{Runs: k.opts.Runs, StaleAfter: k.opts.StaleAfter, Now: k.opts.Now})
		k.cleaned = append(k.cleaned, cleaned...)
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, store.ErrUnreachable), errors.Is(err, store.ErrNoBucket):
		return err
	case err != nil:
		k.warn(err)
	}
	return nil
}

func (k *keeper) warn(err error) { k.warnings = append(k.warnings, err.Error()) }

func (k *keeper) sink(ctx context.Context) sink {
	s := sink{put: func(ctx context.Context, m *Manifest, r io.Reader, size int64) error {
		_, err := k.repo.Put(ctx, m.ClusterID+"/"+m.Data, r, k.opts.putOptions(m, size))
		return err
	}}
	s.stored = func(ctx context.Context, m *Manifest) { k.earlier.backups, k.earlier.err = k.newest(ctx, m.ClusterID) }
	if k.opts.SkipUnchanged {
		s.skip = func(c *candidate) *Manifest { return k.unchanged(ctx, c) }
	}
	return s
}

// newest reads the newest backups of a cluster, down to a good one.
func (k *keeper) newest(ctx context.Context, cluster string) ([]*Backup, error) {
	var l *listing
	var err error
	if k.listing != nil {
		l, err = k.listing.recent(ctx, cluster)
	} else {
		l, err = readListing(ctx, k.repo, cluster)
	}
	if err != nil {
		return nil, err
	}
	enough := func(all []*Backup) bool {
		_, err := newestGood(all, false)
		return err == nil
	}
	all, err := l.newest(ctx, leastBatch, enough)
	if err == nil && !enough(all) && k.listing != nil { // it may be among the older ones
		if l, err = readListing(ctx, k.repo, cluster); err == nil {
			all, err = l.newest(ctx, leastBatch, enough)
		}
	}
	return all, err
}

// unchanged returns the newest good backup's manifest if the member has applied
// nothing since: users, roles, leases and members change without a revision, so
// the log's index counts and not the revision alone.
func (k *keeper) unchanged(ctx context.Context, c *candidate) *Manifest {
	if !c.quorum {
		return nil
	}
	all, err := k.newest(ctx, id(c.status.Header.GetClusterId()))
	if err != nil {
		return nil
	}
	newest, err := Latest(all, false)
	if err != nil || newest.earliest() != newest.latest() || newest.latest() != c.revision ||
		newest.AppliedIndex == 0 || newest.AppliedIndex != c.status.RaftAppliedIndex {
		return nil
	}
	k.at = c
	return &newest.Manifest
}

// seen leaves the record of a run that found nothing changed.
func (k *keeper) seen(ctx context.Context, m *Manifest) error {
	now := k.opts.Now()
	name := baseName(now, k.at.status.Header.GetMemberId(), k.run.id) + seenSuffix
	record := Seen{At: now.UTC().Truncate(time.Second), Backup: m.Name, Revision: m.latest(), Endpoint: k.at.endpoint}
	if err := writeJSON(ctx, k.repo, m.ClusterID+"/"+name, record); err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	return nil
}

// keep makes a backup of stored data: it is looked into where that is cheap,
// gets its lineage, its manifest and its locks. If one of the first fails, the
// data goes too.
func (k *keeper) keep(ctx context.Context, saved *Saved) error {
	m := saved.Manifest
	err := error(nil)
	if folder, ok := folderOf(k.repo); ok && k.opts.examineFile {
		err = m.examine(ctx, folder.Path(m.ClusterID+"/"+m.Data))
	}
	if err == nil {
		err = saved.setLineage(k.earlier)
		saved.warnOfClocks(k.earlier.backups, k.opts.Now())
	}
	if err == nil {
		err = writeJSON(ctx, k.repo, m.ClusterID+"/"+m.Name+manifestSuffix, m)
	}
	if err == nil {
		err = k.confirmStored(ctx, m)
	}
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
		defer cancel()
		errs := []error{err}
		for _, key := range slices.Backward(k.objects(m)) {
			errs = append(errs, k.repo.Delete(ctx, key))
		}
		return fmt.Errorf("save snapshot: %w", errors.Join(errs...))
	}
	if k.opts.Lock == (store.Lock{}) {
		return nil
	}
	for _, key := range k.objects(m) {
		if err := k.repo.SetLock(ctx, key, k.opts.Lock); err != nil {
			return fmt.Errorf("the backup %s is stored, but not protected: %w", m.Name, err)
		}
	}
	return nil
}

// objects returns the keys of a backup's objects, in the order in which they are
// stored.
func (k *keeper) objects(m *Manifest) []string {
	manifest := m.ClusterID + "/" + m.Name + manifestSuffix
	keys := []string{m.ClusterID + "/" + m.Data, manifest}
	if signs(k.repo) {
		keys = slices.Insert(keys, 1, manifest+signatureSuffix)
	}
	return keys
}

// ErrNotStored tells that a store said it had stored what it has not.
var ErrNotStored = errors.New("the store has not what it said to have stored")

// confirmStored looks at data and manifest once more: another host may have taken
// the data for a leftover meanwhile, and not every store keeps what it accepts.
func (k *keeper) confirmStored(ctx context.Context, m *Manifest) error {
	for i, key := range k.objects(m) {
		object, err := k.repo.Stat(ctx, key)
		if errors.Is(err, store.ErrNotExist) {
			if err = confirmAbsent(ctx, k.repo, []string{key}, true)[key]; err == nil {
				object, err = k.repo.Stat(ctx, key)
			}
		}
		switch {
		case errors.Is(err, store.ErrDenied): // it may be allowed to write only
			k.warn(fmt.Errorf("whether the backup is stored could not be looked at: %w", err))
			return nil
		case errors.Is(err, store.ErrNotExist):
			return fmt.Errorf("%w: %s is missing", ErrNotStored, key)
		case err != nil:
			return fmt.Errorf("look at what was stored: %w", err)
		case i == 0 && object.Size != m.StoredBytes:
			return fmt.Errorf("%w: %s has %d bytes instead of %d", ErrNotStored, key, object.Size, m.StoredBytes)
		}
	}
	return nil
}

const undoTimeout = 30 * time.Second

// examine reads a plain snapshot's file and completes the manifest by what it
// says. Damage, or a state older than what the member had served before, means
// that this is no backup.
func (m *Manifest) examine(ctx context.Context, name string) error {
	file, err := regular.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	db, err := mvccdb.Open(file, m.SnapshotBytes)
	if err != nil {
		return fmt.Errorf("look into the snapshot: %w", err)
	}
	report, err := db.Check(ctx, mvccdb.CheckOptions{SkipTrailer: true})
	if err != nil {
		return fmt.Errorf("look into the snapshot: %w", err)
	}
	if err := m.refuse(report.Revision, report.Damage, &report.State); err != nil {
		return err
	}
	m.Examined = true
	m.setAppliedIndex(report.State.ConsistentIndex)
	keys, hash, compact := int64(report.LiveKeys), report.HashKV.Hash, report.HashKV.CompactRevision
	m.Revision, m.Keys, m.HashKV, m.HashRevision, m.CompactRevision = report.Revision, &keys, &hash, report.HashKV.Revision, &compact
	return nil
}

// accept completes the manifest by what the stream of the snapshot showed.
func (m *Manifest) accept(found *mvccdb.Streamed) error {
	if found.Unexamined != "" {
		m.unexamined = found.Unexamined
		return nil
	}
	if err := m.refuse(found.Revision, found.Damage, &found.State); err != nil {
		return err
	}
	m.Examined, m.Revision = true, found.Revision
	m.setAppliedIndex(found.State.ConsistentIndex)
	return nil
}

// refuse says why what was found in a snapshot makes it no backup.
func (m *Manifest) refuse(revision int64, damage []*mvccdb.Damage, state *mvccdb.State) error {
	switch {
	case len(damage) > 0:
		return fmt.Errorf("%w: the database of %s is damaged itself: %w", ErrIncomplete, m.Endpoint, damage[0])
	case m.Quorum && revision < m.RevisionBefore:
		return fmt.Errorf("%w: it is at revision %d, and %s had served %d before", ErrIncomplete, revision, m.Endpoint, m.RevisionBefore)
	case m.foreign(state) != "":
		return hint.With(fmt.Errorf("%w: %s was member %s when it was asked, and sent the snapshot of another cluster", ErrIncomplete, m.Endpoint, m.MemberID),
			"several clusters answer behind that endpoint: name the members themselves")
	}
	return nil
}
