package mvccdb

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
)

// Errors of HashKV for a revision that the file cannot answer for.
var (
	ErrCompacted      = errors.New("required revision has been compacted")
	ErrFutureRevision = errors.New("required revision is a future revision")
)

// HashKV is etcd's hash of the history of all keys, as endpoint hashkv and
// etcdutl hashkv give it. Two are comparable only when their revisions and
// their compact revisions are equal.
type HashKV struct {
	Hash            uint32
	Revision        int64
	CompactRevision int64 // NeverCompacted if so
}

// HashKV computes the hash up to revision rev, 0 for the last one. It ends at
// the first damage.
func (db *DB) HashKV(ctx context.Context, rev int64, opts Options) (HashKV, error) {
	state, err := db.State(ctx)
	if err != nil {
		return HashKV{}, err
	}
	if len(state.Damage) > 0 {
		return HashKV{}, state.Damage[0]
	}
	compact := state.CompactRevision()
	if rev > 0 && rev < compact {
		return HashKV{}, fmt.Errorf("hash revision %d: %w", rev, ErrCompacted)
	}
	opts.Buckets = []string{KeyBucket}
	h := newHistory(compact, rev)
	if err := Scan(ctx, db, opts, h.digest, h.take); err != nil {
		return HashKV{}, err
	}
	if rev > 0 && rev > h.current() {
		return HashKV{}, fmt.Errorf("hash revision %d of %d: %w", rev, h.current(), ErrFutureRevision)
	}
	return h.hashKV(), nil
}

// history follows all revisions in order: it tells which are still the last
// one of their key, and computes the hash.
//
// The hash covers every revision after the compact revision, and of those
// before only what a compaction keeps: the last revision of each key, where
// that is no deletion. Which those are is known only at the end. So the CRCs
// of old revisions are kept one by one and joined then.
type history struct {
	compact, rev int64 // rev 0 means all

	keys *Keys // value: the revision's place in old plus one, or 0, and live
	live int
	// liveEmpty tells that the key without a name is live: a restore with a
	// bumped revision puts one there, which no request can see.
	liveEmpty bool
	old       []oldRevision
	recent    segment // of all revisions after compact

	revisions, tombstones int
	first, last           Revision
	gap                   *Damage // the first place where revisions are missing

	lines  bool    // the versions of each key are followed, see follow
	broken *Damage // the first revision that does not follow the one before of its key
}

// live marks, in the values of history.keys, a key that exists.
const live = 1 << 31

type oldRevision struct {
	crc  uint32
	size uint32 // 0: not to be hashed unless nothing is live, see kept
	// superseded tells that a later revision of the key, or its deletion, came.
	superseded bool
	never      bool // never hashed
}

func newHistory(compact, rev int64) *history {
	return &history{compact: compact, rev: rev, keys: NewKeys()}
}

// digest is what one batch adds to the history.
type digest struct {
	revisions   []revisionDigest
	recent      segment
	first, last place
	count       int
	tombstones  int
	gap         *Damage
}

// place is where a revision stands.
type place struct {
	rev    Revision
	page   uint64
	offset int64
}

type revisionDigest struct {
	id        KeyID
	tombstone bool
	noName    bool
	old       bool
	never     bool
	crc       uint32
	size      uint32
	line      lineStep
}

// digest computes a batch's digest. It may run on all cores.
func (h *history) digest(b *Batch) (*digest, error) {
	d := &digest{revisions: make([]revisionDigest, 0, len(b.Records))}
	undecoded := b.undecoded
	for i := range b.Records {
		r := &b.Records[i]
		for len(undecoded) > 0 && undecoded[0].rev.before(r.Rev) {
			d.follow(undecoded[0], false, h.compact)
			undecoded = undecoded[1:]
		}
		d.follow(r.place(), r.Tombstone, h.compact)
		if h.rev != 0 && r.Rev.Main > h.rev {
			continue
		}
		rd := revisionDigest{
			id: h.keys.ID(r.Key), tombstone: r.Tombstone, noName: len(r.Key) == 0,
			old: r.Rev.Main <= h.compact, never: r.Rev.Main == h.compact && r.Tombstone,
		}
		switch {
		case rd.old:
			rd.crc = crc32.Update(crc32.Update(0, crcTable(), r.RawKey), crcTable(), r.RawValue)
			rd.size = uint32(len(r.RawKey) + len(r.RawValue))
		case !rd.never:
			d.recent.add(r.RawKey)
			d.recent.add(r.RawValue)
		}
		if h.lines {
			rd.line = stepOf(r)
		}
		d.revisions = append(d.revisions, rd)
	}
	for _, at := range undecoded {
		d.follow(at, false, h.compact)
	}
	return d, nil
}

// follow counts a record, and notes a gap between it and the one before.
func (d *digest) follow(at place, tombstone bool, compact int64) {
	if d.count == 0 {
		d.first = at
	} else if d.gap == nil {
		d.gap = at.gapAfter(d.last.rev, compact)
	}
	d.last = at
	d.count++
	if tombstone {
		d.tombstones++
	}
}

// gapAfter tells whether revisions are missing between one and the next. etcd
// numbers changes without gaps; a compaction alone makes some.
func (p place) gapAfter(last Revision, compact int64) *Damage {
	next := p.rev == Revision{Main: last.Main, Sub: last.Sub + 1} || p.rev == Revision{Main: last.Main + 1}
	if last.Main <= compact {
		next = p.rev.Main <= compact || p.rev == Revision{Main: compact + 1}
	}
	if next {
		return nil
	}
	return &Damage{
		Page: p.page, Offset: p.offset, Bucket: KeyBucket,
		What: fmt.Sprintf("revision %d/%d follows %d/%d: what was between is missing", p.rev.Main, p.rev.Sub, last.Main, last.Sub),
	}
}

// take adds digests in order.
func (h *history) take(d *digest) error {
	h.count(d)
	h.recent.join(d.recent)
	for i := range d.revisions {
		if err := h.add(&d.revisions[i]); err != nil {
			return err
		}
	}
	return nil
}

func (h *history) count(d *digest) {
	if d.count == 0 {
		return
	}
	before := h.last
	if h.revisions == 0 {
		// An empty keyspace is at revision 1: the first change makes 2.
		before = Revision{Main: max(1, h.compact)}
	}
	if h.gap == nil {
		h.gap = d.first.gapAfter(before, h.compact)
	}
	if h.gap == nil {
		h.gap = d.gap
	}
	if h.revisions == 0 {
		h.first = d.first.rev
	}
	h.last = d.last.rev
	h.revisions += d.count
	h.tombstones += d.tombstones
}

func (h *history) add(r *revisionDigest) error {
	var value uint32
	if r.old {
		if len(h.old) >= live-1 {
			return errors.New("hash the keyspace: more than two billion compacted revisions")
		}
		h.old = append(h.old, oldRevision{crc: r.crc, size: r.size, never: r.never, superseded: r.tombstone})
		value = uint32(len(h.old))
	}
	if !r.tombstone {
		value |= live
	}
	before, _, slot := h.keys.set(r.id, value)
	if h.lines && h.broken == nil {
		h.broken = h.step(r, before&live != 0, slot)
	}
	if before&live != 0 {
		h.live--
	}
	if value&live != 0 {
		h.live++
	}
	if r.noName {
		h.liveEmpty = !r.tombstone
	}
	if place := before &^ live; place > 0 {
		h.old[place-1].superseded = true
	}
	return nil
}

// current returns the current revision of the keyspace.
func (h *history) current() int64 { return max(1, h.last.Main, h.compact) }

// hashKV returns the hash, after everything was taken.
func (h *history) hashKV() HashKV {
	sum := joiner{}
	sum.add([]byte(KeyBucket))
	for _, o := range h.old {
		// Without a live key etcd takes all of them, as if there were no
		// compaction.
		if o.never || (o.superseded && h.live > 0) {
			continue
		}
		sum.join(segment{crc: o.crc, len: int64(o.size)})
	}
	sum.segment.join(h.recent)
	rev := h.rev
	if rev == 0 {
		rev = h.current()
	}
	return HashKV{Hash: sum.crc, Revision: rev, CompactRevision: h.compact}
}
