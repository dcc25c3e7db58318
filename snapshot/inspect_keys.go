package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/etcdkit/etcdkit/internal/mvccdb"
)

// KeyInfo is a live key in a file.
type KeyInfo struct {
	Key            []byte
	CreateRevision int64
	ModRevision    int64
	Version        int64
	Lease          int64
	ValueBytes     int
}

// KeysOptions says which keys to list.
type KeysOptions struct {
	Prefix   []byte
	Revision int64 // as of this revision; 0 means the last one
	Progress func(done, total int64)
}

// Keys calls fn for every key that is live at a revision, in the order of
// their last changes. It reads the file twice and keeps 16 bytes a key: first
// to learn which revision of each key is the last one.
func (f *File) Keys(ctx context.Context, opts KeysOptions, fn func(KeyInfo) error) error {
	compacted, err := f.checkRevision(ctx, opts.Revision)
	if err != nil {
		return err
	}
	l := &keyListing{opts: opts, keys: mvccdb.NewKeys(), last: compacted}
	scan := mvccdb.Options{Buckets: []string{mvccdb.KeyBucket}, Damage: f.beyondMeta, Progress: opts.Progress}
	if err := mvccdb.Scan(ctx, f.DB, scan, l.note, l.learn); err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	if opts.Revision > l.last {
		return fmt.Errorf("revision %d, the file's last one is %d: %w", opts.Revision, l.last, mvccdb.ErrFutureRevision)
	}
	l.next = 0
	if err := mvccdb.Scan(ctx, f.DB, scan, l.collect, func(all []ordinalKey) error { return l.emit(all, fn) }); err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	return nil
}

// beyondMeta passes over what is broken in one of two meta pages.
func (f *File) beyondMeta(d *mvccdb.Damage) error {
	if d.Page <= 1 {
		return nil
	}
	return d
}

// checkRevision refuses a revision that the file no longer can answer for, and
// returns the one that it is compacted at.
func (f *File) checkRevision(ctx context.Context, rev int64) (compacted int64, err error) {
	if rev == 0 {
		return 0, nil
	}
	state, err := f.State(ctx)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", f.Path, err)
	}
	compacted = state.CompactRevision()
	if rev < 0 || rev < compacted {
		return 0, fmt.Errorf("revision %d, the file is compacted at %d: %w", rev, compacted, mvccdb.ErrCompacted)
	}
	return compacted, nil
}

// keyListing numbers the revisions of a file and knows the last one of each key.
type keyListing struct {
	opts KeysOptions
	keys *mvccdb.Keys // value: the number of the last revision plus one, 0 if deleted
	next uint32
	last int64 // revision of the file, as far as it was read
}

// noted is what one batch says: one entry a revision.
type noted struct {
	id   mvccdb.KeyID
	rev  int64
	gone bool
	skip bool
}

func (l *keyListing) wanted(r *mvccdb.Record) bool {
	return len(r.Key) > 0 && bytes.HasPrefix(r.Key, l.opts.Prefix) && (l.opts.Revision == 0 || r.Rev.Main <= l.opts.Revision)
}

func (l *keyListing) note(b *mvccdb.Batch) ([]noted, error) {
	all := make([]noted, len(b.Records))
	for i := range b.Records {
		r := &b.Records[i]
		all[i].rev = r.Rev.Main
		if all[i].skip = !l.wanted(r); !all[i].skip {
			all[i].id, all[i].gone = l.keys.ID(r.Key), r.Tombstone
		}
	}
	return all, nil
}

func (l *keyListing) learn(all []noted) error {
	for _, n := range all {
		l.next++
		l.last = max(l.last, n.rev)
		switch {
		case l.next == 0:
			return errors.New("more than four billion revisions")
		case n.skip:
		case n.gone:
			l.keys.Set(n.id, 0)
		default:
			l.keys.Set(n.id, l.next)
		}
	}
	return nil
}

// ordinalKey is a key that may be live, with its place in its batch.
type ordinalKey struct {
	KeyInfo
	id   mvccdb.KeyID
	skip bool
}

func (l *keyListing) collect(b *mvccdb.Batch) ([]ordinalKey, error) {
	all := make([]ordinalKey, len(b.Records))
	for i := range b.Records {
		r := &b.Records[i]
		if all[i].skip = !l.wanted(r) || r.Tombstone; all[i].skip {
			continue
		}
		all[i].id = l.keys.ID(r.Key)
		all[i].KeyInfo = KeyInfo{
			Key: bytes.Clone(r.Key), CreateRevision: r.CreateRevision, ModRevision: r.ModRevision,
			Version: r.Version, Lease: r.Lease, ValueBytes: len(r.Value),
		}
	}
	return all, nil
}

func (l *keyListing) emit(all []ordinalKey, fn func(KeyInfo) error) error {
	for i := range all {
		l.next++
		if all[i].skip {
			continue
		}
		if last, _ := l.keys.Get(all[i].id); last != l.next {
			continue
		}
		if err := fn(all[i].KeyInfo); err != nil {
			return err
		}
	}
	return nil
}
