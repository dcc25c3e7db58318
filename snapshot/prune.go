package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/store"
)

// PruneOptions says what to prune.
type PruneOptions struct {
	Policy
	Cluster    string // "" means every cluster of the repository
	Lineage    string // "" means the newest of each cluster
	Own        string // the backup that this run has just made: its time proves nothing
	DryRun     bool
	Force      bool // delete though it is not sure what time it is
	Runs       Runs
	StaleAfter time.Duration
	Now        func() time.Time
}

// Pruned is what a pruning did, or would do. Of a backup that no rule needed to
// read, it has what the name says.
type Pruned struct {
	DryRun    bool        `json:"dryRun"`
	Decisions []*Decision `json:"backups"`
	Leftovers []Leftover  `json:"leftovers"`
	Notes     []string    `json:"notes,omitempty"`
}

// Prune deletes the backups that the policy does not keep, of one lineage for
// each cluster, and what runs left behind.
func Prune(ctx context.Context, repo store.Store, opts PruneOptions) (*Pruned, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	p := &Pruned{DryRun: opts.DryRun, Decisions: []*Decision{}, Leftovers: []Leftover{}}
	l, err := readListing(ctx, repo, "")
	if err != nil {
		return nil, err
	}
	now, unsure := storageNow(ctx, repo, opts.Now(), opts.Force)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	found := false
	for _, cluster := range l.of(opts.Cluster).clusters() {
		d := &decider{PruneOptions: opts, listing: l.of(cluster), now: now}
		if err := d.decide(ctx); err != nil {
			return nil, err
		}
		found = found || d.found
		p.Decisions = append(p.Decisions, d.decisions...)
		if unsure == nil && !opts.Force && slices.ContainsFunc(d.decisions, func(d *Decision) bool { return !d.Keep }) {
			unsure = checkSilence(d.times(opts.Own), now, shortSilence)
		}
	}
	if opts.Lineage != "" && !found {
		return nil, fmt.Errorf("prune: %w: none is of lineage %s", ErrNoBackup, opts.Lineage)
	}
	if err := p.respectLocks(ctx, repo, now); err != nil {
		return p, err
	}
	if err := p.carryOut(ctx, l, opts, unsure); err != nil {
		return p, err
	}
	left, _, err := l.clean(ctx, CleanOptions{Runs: opts.Runs, StaleAfter: opts.StaleAfter, Now: opts.Now, DryRun: opts.DryRun, Force: opts.Force})
	p.Leftovers = append(p.Leftovers, left...)
	return p, err
}

// carryOut deletes what was decided, unless it is not sure what time it is.
func (p *Pruned) carryOut(ctx context.Context, l *listing, opts PruneOptions, unsure error) error {
	doomed := slices.ContainsFunc(p.Decisions, func(d *Decision) bool { return !d.Keep })
	switch {
	case opts.DryRun:
		if doomed && unsure != nil {
			p.Notes = append(p.Notes, "this would be refused without --force: "+unsure.Error())
		}
		return nil
	case doomed && unsure != nil:
		next := "check that the time is right, then delete by: etcdkit snapshot prune --force"
		if first := hint.Of(unsure); first != "" {
			next = first + "; if the time is right, delete by: etcdkit snapshot prune --force"
		}
		return hint.With(unhinted(unsure), "%s", next)
	}
	p.confirmBroken(ctx, l.repo)
	if err := p.delete(ctx, l.repo, opts.Runs); err != nil {
		return err
	}
	return l.dropSeen(ctx)
}

// unhinted is an error without its hint, for a better one.
func unhinted(err error) error {
	if hint.Of(err) != "" {
		return errors.Unwrap(err)
	}
	return err
}

// confirmBroken keeps those backups whose data is not surely missing.
func (p *Pruned) confirmBroken(ctx context.Context, repo store.Store) {
	var keys []string
	for _, d := range p.Decisions {
		if !d.Keep && d.Backup.Problem != "" {
			keys = append(keys, d.Backup.key(d.Backup.Data))
		}
	}
	answers := confirmAbsent(ctx, repo, keys, true)
	for _, d := range p.Decisions {
		err, asked := answers[d.Backup.key(d.Backup.Data)]
		if asked && !d.Keep && err != nil && !errors.Is(err, store.ErrNotExist) {
			d.Reasons = nil
			d.keep("nobody knows whether its data is there: " + err.Error())
		}
	}
}

// respectLocks keeps what its store protects, be it the data or the manifest.
func (p *Pruned) respectLocks(ctx context.Context, repo store.Store, now time.Time) error {
	for _, d := range p.Decisions {
		if d.Keep {
			continue
		}
		for _, name := range []string{d.Backup.Name + manifestSuffix, d.Backup.Data} {
			lock, err := repo.Locked(ctx, d.Backup.key(name))
			if err != nil && !errors.Is(err, store.ErrNotExist) {
				return fmt.Errorf("prune: %w", err)
			}
			if reason := locked(lock, now); reason != "" {
				d.Reasons = nil
				d.keep(reason)
				break
			}
		}
	}
	return nil
}

// locked says how a lock protects its object, "" if it does not.
func locked(lock store.Lock, now time.Time) string {
	switch {
	case lock.LegalHold:
		return "under legal hold"
	case lock.Active(now):
		return "locked until " + lock.Until.UTC().Format(time.RFC3339)
	}
	return ""
}

// delete removes what is not kept: the manifest first, so that nothing claims
// to be a backup whose data is gone, then the data, then the records. The
// run's file names the data, for the next run to finish what this one cannot.
func (p *Pruned) delete(ctx context.Context, repo store.Store, runs Runs) error {
	file := runFile{Repository: placeOf(repo)}
	for _, d := range p.Decisions {
		if !d.Keep {
			file.Deleting = append(file.Deleting, d.Backup.attached()...)
		}
	}
	if len(file.Deleting) == 0 {
		return nil
	}
	run, err := runs.start(newRun(), file)
	if err != nil {
		return fmt.Errorf("prune: %w", err)
	}
	for _, d := range p.Decisions {
		if d.Keep {
			continue
		}
		if err := deleteBackup(ctx, repo, d.Backup); err != nil {
			run.abandon()
			return fmt.Errorf("prune: %w", err)
		}
		d.Deleted = true
	}
	run.end()
	return nil
}

// attached returns the keys of what belongs to a manifest, in the order in which
// it goes after it.
func (b *Backup) attached() []string {
	return slices.Concat([]string{b.key(b.Data)}, b.records, b.signatures)
}

func deleteBackup(ctx context.Context, repo store.Store, b *Backup) error {
	for _, key := range append([]string{b.key(b.Name + manifestSuffix)}, b.attached()...) {
		if err := repo.Delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// dropSeen removes the records of runs that found nothing changed, where a
// backup has been taken since.
func (l *listing) dropSeen(ctx context.Context) error {
	newest := map[string]time.Time{}
	for _, o := range l.manifests {
		newest[o.cluster] = o.at
	}
	var errs []error
	for _, o := range l.seen {
		if o.at.Before(newest[o.cluster]) {
			for _, key := range append([]string{o.cluster + "/" + o.base + seenSuffix}, l.signaturesOf(o)...) {
				errs = append(errs, l.repo.Delete(ctx, key))
			}
		}
	}
	return errors.Join(errs...)
}
