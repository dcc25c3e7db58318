package mvccdb

import "fmt"

// follow makes a history follow the versions of each key: etcd numbers them
// without gaps, and all of them name the revision that created the key. A
// changed bit in a key's name or in one of these numbers breaks the line.
func (h *history) follow() {
	h.lines = true
	h.keys.links = make([]uint32, len(h.keys.slots))
}

// lineStep is what a revision says about its place among those of its key.
type lineStep struct {
	at     place
	before uint32 // the link that the version before must have left
	after  uint32 // the link that it leaves
	first  bool   // it created the key
	bumped bool   // the record that a restore with a bumped revision leaves
}

func stepOf(r *Record) lineStep {
	return lineStep{
		at: r.place(), first: r.Version == 1 && r.CreateRevision == r.ModRevision, bumped: len(r.RawValue) == 0,
		before: link(r.CreateRevision, r.Version), after: link(r.CreateRevision, r.Version+1),
	}
}

// link stands for a version of a key, in 32 bits.
func link(created, version int64) uint32 {
	const spread, more = 0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f
	return uint32((uint64(created)*spread ^ uint64(version)*more) >> 32)
}

// step takes the next revision of the key in a slot, which exists if alive. Of
// what a compaction has gone through only the rest is left, which says nothing.
func (h *history) step(r *revisionDigest, alive bool, slot uint64) *Damage {
	s, link := r.line, &h.keys.links[slot]
	if s.bumped {
		return nil
	}
	want := *link
	*link = s.after
	what := ""
	switch {
	case s.at.rev.Main <= h.compact:
	case r.tombstone && !alive:
		what = "deletes a key that does not exist"
	case r.tombstone:
	case alive && s.before != want:
		what = "does not follow the version before of its key"
	case !alive && !s.first:
		what = "is a later version of a key that does not exist"
	}
	if what == "" {
		return nil
	}
	return &Damage{
		Page: s.at.page, Offset: s.at.offset, Bucket: KeyBucket,
		What: fmt.Sprintf("revision %d/%d %s", s.at.rev.Main, s.at.rev.Sub, what),
	}
}
