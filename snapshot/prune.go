package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/etcdkit/etcdkit/internal/store"
)

// PruneOptions says what to prune.
type PruneOptions struct {
	Policy
	Cluster    string // "" means every cluster of the repository
	Lineage    string // "" means the newest of each cluster
	DryRun     bool
	Runs       Runs
	StaleAfter time.Duration
	Now        func() time.Time
}

// Pruned is what a pruning did, or would do.
type Pruned struct {
	DryRun    bool        `json:"dryRun"`
	Decisions []*Decision `json:"backups"`
	Leftovers []Leftover  `json:"leftovers"`
}

// Prune deletes the backups that the policy does not keep, of one lineage for
// each cluster, and what runs left behind.
func Prune(ctx context.Context, repo store.Store, opts PruneOptions) (*Pruned, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	p := &Pruned{DryRun: opts.DryRun, Decisions: []*Decision{}, Leftovers: []Leftover{}}
	l, err := readListing(ctx, repo, opts.Cluster)
	if err != nil {
		return nil, err
	}
	all, err := l.backups(ctx, repo)
	if err != nil {
		return nil, err
	}
	if opts.Lineage != "" && !slices.ContainsFunc(all, func(b *Backup) bool { return b.Lineage == opts.Lineage }) {
		return nil, fmt.Errorf("prune: %w: none is of lineage %s", ErrNoBackup, opts.Lineage)
	}
	for _, cluster := range Clusters(all) {
		p.Decisions = append(p.Decisions, opts.decide(all, cluster)...)
	}
	if err := p.respectLocks(ctx, repo, opts.Now()); err != nil {
		return p, err
	}
	if !opts.DryRun {
		if err := p.delete(ctx, repo, opts.Runs); err != nil {
			return p, err
		}
		if err := dropSeen(ctx, repo, l.seen, all); err != nil {
			return p, err
		}
	}
	left, err := Clean(ctx, repo, CleanOptions{Runs: opts.Runs, StaleAfter: opts.StaleAfter, Now: opts.Now, DryRun: opts.DryRun})
	p.Leftovers = append(p.Leftovers, left...)
	return p, err
}

// decide splits one cluster's backups; those of other lineages are kept.
func (o PruneOptions) decide(all []*Backup, cluster string) []*Decision {
	var mine []*Backup
	for _, b := range all {
		if b.ClusterID == cluster {
			mine = append(mine, b)
		}
	}
	lineage := o.Lineage
	if lineages := Lineages(mine); lineage == "" && len(lineages) > 0 {
		lineage = lineages[0]
	}
	var inside []*Backup
	var decisions []*Decision
	for _, b := range mine {
		if b.Lineage == lineage && b.Schema != 0 {
			inside = append(inside, b)
			continue
		}
		reason := "of lineage " + b.Lineage + ", which is not asked for"
		if b.Schema == 0 {
			reason = "its manifest cannot be read"
		}
		decisions = append(decisions, &Decision{Backup: b, Keep: true, Reasons: []string{reason}})
	}
	return append(decisions, o.Split(inside, o.Now())...)
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
			file.Deleting = append(file.Deleting, append([]string{d.Backup.key(d.Backup.Data)}, d.Backup.records...)...)
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

func deleteBackup(ctx context.Context, repo store.Store, b *Backup) error {
	keys := append([]string{b.key(b.Name + manifestSuffix), b.key(b.Data)}, b.records...)
	for _, key := range keys {
		if err := repo.Delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// dropSeen removes the records of runs that found nothing changed, where a
// backup has been taken since.
func dropSeen(ctx context.Context, repo store.Store, seen []object, all []*Backup) error {
	newest := map[string]time.Time{}
	for _, b := range all {
		newest[b.ClusterID] = b.CreatedAt
	}
	var errs []error
	for _, o := range seen {
		if o.at.Before(newest[o.cluster]) {
			errs = append(errs, repo.Delete(ctx, o.cluster+"/"+o.base+seenSuffix))
		}
	}
	return errors.Join(errs...)
}
