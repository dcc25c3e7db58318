package mvccdb

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"
)

// Trailer is the state of the SHA-256 at the end of a snapshot.
type Trailer int

// States of a trailer.
const (
	TrailerNone      Trailer = iota // the file has none, as a data directory's
	TrailerUnchecked                // there is one, and the check was not asked for
	TrailerGood
	TrailerBad
)

// CheckOptions says what Check does beside the scan.
type CheckOptions struct {
	Workers     int  // 0 means one per core
	SkipTrailer bool // do not compute the file's SHA-256
	MaxDamage   int  // how much of the damage to keep; 0 means 100
	Progress    func(done, total int64)
	// Watch, if set, sees every batch, on all cores at once.
	Watch func(*Batch)
}

const (
	defaultMaxDamage = 100
	keptRuns         = 64 // of free pages
)

// Report is everything that Check finds out.
type Report struct {
	FileSize  int64
	Size      int64 // of the pages in use or free for use, as etcdutl's status gives it
	PageSize  int
	Pages     uint64
	FreePages uint64 // not reached from the root
	Free      []Run  // the first of them
	TxID      uint64

	Trailer Trailer
	SHA256  [sha256.Size]byte // of the database, unless SkipTrailer

	State       State
	Revision    int64    // the current revision
	First, Last Revision // the oldest and the newest one stored
	Revisions   int
	Tombstones  int
	LiveKeys    int // that a client can see
	LiveRecords int // as etcdutl's status counts: with the nameless one that a bumped restore leaves
	HashKV      HashKV
	Hash        uint32 // etcdutl's status: over all buckets
	Buckets     []BucketInfo

	Damage      []*Damage // the first of it
	DamageCount int       // all of it
}

// BucketInfo is the size of a bucket.
type BucketInfo struct {
	Name     string
	Elements int
	Bytes    int64 // of keys and values
	Pages    int   // read, with the pages that overflow; branch pages apart
}

// Good reports whether nothing is wrong.
func (r *Report) Good() bool { return r.DamageCount == 0 && r.Trailer != TrailerBad }

// Check reads everything once and reports. The error is about reading; what
// is wrong with the file is in the report.
func (db *DB) Check(ctx context.Context, opts CheckOptions) (*Report, error) {
	c := &checker{db: db, opts: opts}
	if c.opts.MaxDamage == 0 {
		c.opts.MaxDamage = defaultMaxDamage
	}
	r := &c.report
	r.FileSize, r.Pages, r.PageSize, r.TxID = db.file, db.meta.pages, db.PageSize(), db.meta.txid
	r.Size = int64(r.Pages) * int64(r.PageSize)

	g, ctx := errgroup.WithContext(ctx)
	if !opts.SkipTrailer {
		g.Go(func() error { return c.checkTrailer(ctx) })
	} else if db.HasTrailer() {
		r.Trailer = TrailerUnchecked
	}
	g.Go(func() error { return c.scan(ctx) })
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if err := c.finish(); err != nil {
		return nil, err
	}
	return r, nil
}

// checker makes a report.
type checker struct {
	db      *DB
	opts    CheckOptions
	report  Report
	reached PageSet
	history *history
	hash    segment
}

func (c *checker) damage(d *Damage) error {
	if c.report.DamageCount < c.opts.MaxDamage {
		c.report.Damage = append(c.report.Damage, d)
	}
	c.report.DamageCount++
	return nil
}

func (c *checker) scan(ctx context.Context) error {
	// Damage in the small buckets' pages is found by the scan again; what
	// they say is needed before.
	state, err := c.db.State(ctx)
	if _, damaged := err.(*Damage); err != nil && !damaged { //nolint:errorlint // small returns it as it is
		return err
	}
	c.report.State = *state
	c.history = newHistory(state.CompactRevision(), 0)
	c.history.follow()
	opts := Options{Workers: c.opts.Workers, Damage: c.damage, Reached: &c.reached, Progress: c.opts.Progress}
	if err := Scan(ctx, c.db, opts, c.digest, c.take); err != nil {
		return err
	}
	for _, d := range state.Damage {
		_ = c.damage(d)
	}
	return nil
}

// batchDigest is what one batch adds to the report.
type batchDigest struct {
	BucketInfo
	first   bool
	hash    segment
	history *digest
}

func (c *checker) digest(b *Batch) (*batchDigest, error) {
	if c.opts.Watch != nil {
		c.opts.Watch(b)
	}
	d := &batchDigest{BucketInfo: BucketInfo{Name: b.Bucket, Elements: len(b.Elements), Pages: b.Pages}, first: b.First}
	if b.First {
		d.hash.add([]byte(b.Bucket))
	}
	for _, e := range b.Elements {
		d.Bytes += int64(len(e.RawKey) + len(e.RawValue))
	}
	if b.Bucket == KeyBucket {
		var err error
		if d.history, err = c.history.digest(b); err != nil {
			return nil, err
		}
		if d.history.recent.len == d.Bytes { // the same bytes
			d.hash.join(d.history.recent)
			return d, nil
		}
	}
	for _, e := range b.Elements {
		d.hash.add(e.RawKey)
		d.hash.add(e.RawValue)
	}
	return d, nil
}

func (c *checker) take(d *batchDigest) error {
	c.hash.join(d.hash)
	if d.first {
		c.report.Buckets = append(c.report.Buckets, BucketInfo{Name: d.Name})
	}
	b := &c.report.Buckets[len(c.report.Buckets)-1]
	b.Elements += d.Elements
	b.Bytes += d.Bytes
	b.Pages += d.Pages
	if d.history == nil {
		return nil
	}
	return c.history.take(d.history)
}

// finish draws the conclusions.
func (c *checker) finish() error {
	r, h := &c.report, c.history
	r.Revision, r.First, r.Last = h.current(), h.first, h.last
	r.Revisions, r.Tombstones = h.revisions, h.tombstones
	r.LiveKeys, r.LiveRecords = h.live, h.live
	if h.liveEmpty {
		r.LiveKeys--
	}
	r.HashKV, r.Hash = h.hashKV(), c.hash.crc
	if h.gap != nil {
		_ = c.damage(h.gap)
	}
	for run := range c.db.Unreachable(&c.reached) {
		if run.First < r.Pages {
			run.Count = min(run.Count, r.Pages-run.First)
			r.FreePages += run.Count
			if len(r.Free) < keptRuns {
				r.Free = append(r.Free, run)
			}
		}
	}
	wrong, err := c.db.freelistDamage(&c.reached)
	if err != nil {
		return err
	}
	names := make([]string, len(r.Buckets))
	for i, b := range r.Buckets {
		names[i] = b.Name
	}
	for _, d := range append(wrong, bucketDamage(names)...) {
		_ = c.damage(d)
	}
	if h.broken != nil && r.DamageCount == 0 { // follows from a record that cannot be read, too
		_ = c.damage(h.broken)
	}
	return nil
}

// checkTrailer computes the SHA-256 of the database and compares it with what
// follows it.
func (c *checker) checkTrailer(ctx context.Context) error {
	sum, err := c.db.sum(ctx)
	if err != nil {
		return err
	}
	c.report.SHA256 = sum
	if !c.db.HasTrailer() {
		return nil
	}
	var want [sha256.Size]byte
	if err := c.db.readAt(want[:], c.db.size); err != nil {
		return fmt.Errorf("read the trailing SHA-256: %w", err)
	}
	c.report.Trailer = TrailerGood
	if sum != want {
		c.report.Trailer = TrailerBad
	}
	return nil
}

// sum computes the SHA-256 of the database.
func (db *DB) sum(ctx context.Context) (sum [sha256.Size]byte, err error) {
	const piece = 128 << 10 // stays in the processor's cache
	h := sha256.New()
	buf := make([]byte, min(piece, db.size))
	for at := int64(0); at < db.size; at += piece {
		if ctx.Err() != nil {
			return sum, context.Cause(ctx)
		}
		b := buf[:min(piece, db.size-at)]
		if n, err := db.r.ReadAt(b, at); n < len(b) {
			if err == nil || err == io.EOF { // io.ReaderAt's contract
				err = io.ErrUnexpectedEOF
			}
			return sum, fmt.Errorf("read byte %d: %w", at+int64(n), err)
		}
		h.Write(b)
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}
