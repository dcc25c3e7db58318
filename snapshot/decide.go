package snapshot

import (
	"context"
	"fmt"
	"time"
)

// decider decides about the backups of one cluster. It reads those on which a
// deletion depends: the ones that a rule counts, and the ones to be deleted. Of
// the others it knows the name, and takes them for good ones of the lineage.
type decider struct {
	PruneOptions
	*listing
	now time.Time

	known     map[string]*Backup // by name; nil for one that is gone
	lineage   string
	blocked   string // why nothing of this cluster may be deleted
	found     bool   // a backup of the lineage
	decisions []*Decision
}

func (d *decider) decide(ctx context.Context) error {
	d.known = map[string]*Backup{}
	if err := d.findLineage(ctx); err != nil {
		return err
	}
	for {
		d.split()
		missing := d.needed()
		if len(missing) == 0 {
			return nil
		}
		all, err := d.read(ctx, missing)
		if err != nil {
			return err
		}
		for _, o := range missing {
			d.known[o.base] = nil
		}
		d.learn(all)
	}
}

func (d *decider) learn(all []*Backup) {
	for _, b := range all {
		d.known[b.Name] = b
		d.found = d.found || b.Lineage == d.lineage
	}
}

// findLineage finds the lineage to prune: the newest one, unless told.
func (d *decider) findLineage(ctx context.Context) error {
	var latest *Backup
	all, err := d.newest(ctx, firstBatch, func(all []*Backup) (enough bool) {
		latest, _ = newestGood(all, false) // without a good one the lineage is all that counts
		return latest != nil
	})
	if err != nil {
		return err
	}
	if lineages := Lineages(all); len(lineages) > 0 {
		d.lineage = lineages[0]
	}
	if d.Lineage != "" {
		d.lineage = d.Lineage
	} else if younger := unread(unusable(all, latest)); len(younger) > 0 {
		d.blocked = "the younger " + younger[0].Name + " cannot be read, and may be of a newer lineage"
	}
	d.learn(all)
	if d.Lineage == "" || d.found {
		return nil
	}
	if all, err = d.read(ctx, d.manifests); err == nil { // a lineage that is not the newest
		d.learn(all)
	}
	return err
}

func unread(all []*Backup) (some []*Backup) {
	for _, b := range all {
		if b.unread {
			some = append(some, b)
		}
	}
	return some
}

// split applies the policy to what is known and what is supposed.
func (d *decider) split() {
	var inside []*Backup
	d.decisions = []*Decision{}
	keep := func(b *Backup, reason string) {
		d.decisions = append(d.decisions, &Decision{Backup: b, Keep: true, Reasons: []string{reason}})
	}
	for _, o := range d.manifests {
		b, known := d.known[o.base]
		if !known {
			b = d.supposed(o)
		}
		switch {
		case b == nil:
		case b.Schema == 0 || b.Unread() != "":
			keep(b, "it cannot be read: "+b.unreadBecause())
		case b.Lineage != d.lineage:
			keep(b, fmt.Sprintf("of lineage %s, which is not asked for", b.Lineage))
		case b.Keep:
			keep(b, "marked by --keep when it was saved")
		case d.blocked != "":
			keep(b, d.blocked)
		default:
			inside = append(inside, b)
		}
	}
	sortByAge(inside)
	d.decisions = append(d.decisions, d.Split(inside, d.now)...)
}

// supposed is a backup as its name alone tells it.
func (d *decider) supposed(o object) *Backup {
	b := &Backup{Manifest: Manifest{
		Schema: Schema, Name: o.base, ClusterID: o.cluster, CreatedAt: o.at, MemberID: o.member,
		Lineage: d.lineage, Quorum: true, Writer: Writer{Run: o.run},
	}, supposed: true}
	for _, ending := range dataEndings() {
		if data, ok := d.data[b.key(o.base+ending)]; ok {
			b.Data, b.StoredBytes = o.base+ending, data.Size
		}
	}
	return b
}

// needed returns the manifests that must be read before anything is deleted:
// where nothing would be, none.
func (d *decider) needed() (some []object) {
	doomed := false
	bases := map[string]bool{}
	for _, decision := range d.decisions {
		doomed = doomed || !decision.Keep
		if decision.Backup.supposed && (!decision.Keep || decision.counted) {
			bases[decision.Backup.Name] = true
		}
	}
	if !doomed {
		return nil
	}
	for _, o := range d.manifests {
		if bases[o.base] {
			some = append(some, o)
		}
	}
	return some
}
