package snapshot

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/etcdkit/etcdkit/internal/mvccdb"
)

// Sizes of the copy: pieces in flight, and how often the written bytes are
// sent on to the disk, so that the last sync does not wait for all of them.
const (
	copyPiece   = 1 << 20
	copyPieces  = 8
	writeBehind = 32 << 20
)

// copyDatabase copies the snapshot into the target while hashing it, then
// checks what arrived, while it is still in memory.
func copyDatabase(ctx context.Context, src RestoreSource, t *stagedDir, opts RestoreOptions, seen *keyWatch) (c *Copied, err error) {
	f, err := os.OpenFile(t.database(), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create the database: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum, size, err := copyHashed(ctx, f, src, opts.Progress)
	if err != nil {
		return nil, err
	}
	c = sum.finish(size)
	if err := c.judge(src, opts.SkipHashCheck); err != nil {
		if bad := notEvenDatabase(f, size); bad != nil {
			return nil, fmt.Errorf("%s: %w", src.Name, bad)
		}
		return nil, err
	}
	if c.Trailer != nil {
		if err := f.Truncate(size - int64(len(c.Trailer))); err != nil {
			return nil, fmt.Errorf("cut off the SHA-256: %w", err)
		}
		size -= int64(len(c.Trailer))
	}
	c.Report, err = checkCopy(ctx, f, size, seen)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", src.Name, err)
	}
	return c, nil
}

// notEvenDatabase tells what a file without a usable trailer is, if it is no
// database at all.
func notEvenDatabase(f *os.File, size int64) error {
	_, err := mvccdb.Open(f, size)
	if errors.Is(err, mvccdb.ErrNotDatabase) {
		return err
	}
	return nil
}

// checkCopy checks every page and every revision of the copied database.
func checkCopy(ctx context.Context, f *os.File, size int64, seen *keyWatch) (*mvccdb.Report, error) {
	db, err := mvccdb.Open(f, size)
	if err != nil {
		return nil, err
	}
	report, err := db.Check(ctx, mvccdb.CheckOptions{SkipTrailer: true, Watch: seen.watch})
	if err != nil {
		return nil, err
	}
	if report.DamageCount > 0 {
		return nil, &DamageError{First: report.Damage[0], Count: report.DamageCount}
	}
	return report, nil
}

// copyHashed writes src to f and hashes it on another core.
func copyHashed(ctx context.Context, f *os.File, src RestoreSource, progress func(done, total int64)) (*copySum, int64, error) {
	free := make(chan []byte, copyPieces)
	for range copyPieces {
		free <- make([]byte, copyPiece)
	}
	written := make(chan []byte, copyPieces)
	s := newCopySum()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		for b := range written {
			s.add(b)
			free <- b[:copyPiece]
		}
		return nil
	})
	var size int64
	g.Go(func() error {
		defer close(written)
		for {
			b := <-free
			n, err := io.ReadFull(src.Reader, b)
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				return fmt.Errorf("read %s: %w", src.Name, err)
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if _, err := f.Write(b[:n]); err != nil {
				return fmt.Errorf("write the database: %w", err)
			}
			written <- b[:n]
			if size/writeBehind != (size+int64(n))/writeBehind {
				startWriting(f, size/writeBehind*writeBehind, writeBehind)
			}
			size += int64(n)
			progress(size, src.Size)
			if err != nil {
				return nil
			}
		}
	})
	err := g.Wait()
	return s, size, err
}

// copySum hashes a snapshot whose end is not known before it comes: the last bytes
// may be the trailer.
type copySum struct {
	hash.Hash
	tail []byte
}

func newCopySum() *copySum { return &copySum{Hash: sha256.New(), tail: make([]byte, 0, 2*sha256.Size)} }

func (s *copySum) add(b []byte) {
	if len(b) < sha256.Size {
		s.tail = append(s.tail, b...)
		if spare := len(s.tail) - sha256.Size; spare > 0 {
			s.Write(s.tail[:spare])
			s.tail = append(s.tail[:0], s.tail[spare:]...)
		}
		return
	}
	s.Write(s.tail)
	s.Write(b[:len(b)-sha256.Size])
	s.tail = append(s.tail[:0], b[len(b)-sha256.Size:]...)
}

// finish tells the trailer from the database: with it, the size is what etcd
// makes snapshots of, and the SHA-256 more.
func (s *copySum) finish(size int64) *Copied {
	c := &Copied{FileSize: size}
	if size%512 == sha256.Size {
		c.Trailer = append([]byte(nil), s.tail...)
		c.DatabaseSHA256 = [32]byte(s.Sum(nil))
		s.Write(s.tail)
		c.FileSHA256 = [32]byte(s.Sum(nil))
		return c
	}
	s.Write(s.tail)
	c.DatabaseSHA256 = [32]byte(s.Sum(nil))
	c.FileSHA256 = c.DatabaseSHA256
	return c
}
