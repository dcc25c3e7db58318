package disk

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	bolt "go.etcd.io/bbolt"
	"golang.org/x/sync/errgroup"
)

const (
	// commitEvery is how often a member commits its database.
	commitEvery = 100 * time.Millisecond
	// backlog is how many entries may wait to be applied. A member that is
	// further behind answers nobody, and neither is one measured.
	backlog = 10000
	// filled is the size of the database that a round begins with.
	filled = 32 << 20
	// mapped spares a commit from waiting for a snapshot's reader to map more,
	// as etcd does with a larger number.
	mapped = 512 << 20
	// snapshotEvery is the pause between two snapshots being read.
	snapshotEvery = time.Second
)

// backend is a database as a member has it, fed by what the log has taken in.
type backend struct {
	db      *bolt.DB
	applied chan []byte
	commits *hdrhistogram.Histogram
	seq     uint64
}

func newBackend(path string, next func() []byte) (_ *backend, err error) {
	opts := &bolt.Options{Timeout: time.Second, NoFreelistSync: true, FreelistType: bolt.FreelistMapType}
	if runtime.GOOS != "windows" { // where the file would take that much
		opts.InitialMmapSize = mapped
	}
	db, err := bolt.Open(path, 0o600, opts)
	if err != nil {
		return nil, err
	}
	b := &backend{db: db, applied: make(chan []byte, backlog), commits: newHistogram()}
	block := len(next())
	for size := 0; size < filled; {
		err := b.commit(func(put func([]byte) error) error {
			for range 1000 {
				size += block
				if err := put(next()); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("fill a database: %w", err), db.Close())
		}
	}
	b.commits.Reset()
	return b, nil
}

// commit runs fill inside a transaction and times the commit alone.
func (b *backend) commit(fill func(put func([]byte) error) error) error {
	tx, err := b.db.Begin(true)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // nothing after a commit
	bucket, err := tx.CreateBucketIfNotExists([]byte("key"))
	if err != nil {
		return err
	}
	bucket.FillPercent = 0.9 // as etcd does, for its keys only ever ascend
	err = fill(func(value []byte) error {
		b.seq++
		return bucket.Put(binary.BigEndian.AppendUint64(nil, b.seq), value)
	})
	if err != nil {
		return err
	}
	start := time.Now()
	if err := tx.Commit(); err != nil {
		return err
	}
	return b.commits.RecordValue(int64(time.Since(start)))
}

// run commits what was applied until ctx ends.
func (b *backend) run(ctx context.Context) error {
	tick := time.NewTicker(commitEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := b.commit(b.drain); err != nil {
			return fmt.Errorf("commit: %w", err)
		}
	}
}

// drain puts what waits to be applied.
func (b *backend) drain(put func([]byte) error) error {
	for range len(b.applied) {
		if err := put(<-b.applied); err != nil {
			return err
		}
	}
	return nil
}

// readSnapshots reads the database again and again, as a backup does.
func (b *backend) readSnapshots(ctx context.Context) error {
	for {
		err := b.db.View(func(tx *bolt.Tx) error {
			_, err := tx.WriteTo(&until{ctx})
			return err
		})
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("read a snapshot: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(snapshotEvery):
		}
	}
}

// until takes any data in until its context ends.
type until struct{ ctx context.Context }

func (u *until) Write(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	return io.Discard.Write(p)
}

// beginMember prepares a round of pattern etcd: the log is measured while a
// database commits and a snapshot is read on the same disk.
func beginMember(ctx context.Context, opts Options, _ Filesystem) (round, error) {
	s, err := newScratch(opts.Dir)
	if err != nil {
		return round{}, err
	}
	next := blocks(opts.Block)
	b, err := newBackend(filepath.Join(s.dir, "db"), next)
	if err != nil {
		return round{}, joinEnd(err, s.remove)
	}
	j, err := newJournal(s.dir, opts.Block, opts.Jobs)
	if err != nil {
		return round{}, errors.Join(err, joinEnd(b.db.Close(), s.remove))
	}
	ctx, stop := context.WithCancel(ctx)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return b.run(ctx) })
	g.Go(func() error { return b.readSnapshots(ctx) })
	save := func() (time.Time, error) {
		start := time.Now()
		if err := j.save(); err != nil {
			return start, err
		}
		for range j.batch {
			select {
			case b.applied <- next():
			default: // behind as far as a member may be
			}
		}
		return start, context.Cause(ctx)
	}
	end := func() error {
		stop()
		return errors.Join(g.Wait(), j.wal.Close(), b.db.Close(), s.remove())
	}
	return round{ops: []operation{save}, end: end, commits: b.commits}, nil
}
