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

// copyDatabase copies the snapshot into the target, hashes it and checks what
// arrived, while it is still in memory.
func copyDatabase(ctx context.Context, src RestoreSource, t *stagedDir, opts RestoreOptions, seen *keyWatch) (c *Copied, err error) {
	f, err := os.OpenFile(t.database(), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create the database: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	c, damage, err := copyAndCheck(ctx, f, src, opts, seen)
	if err != nil {
		return nil, err
	}
	if err := c.judge(src, opts.SkipHashCheck); err != nil {
		if errors.Is(damage, mvccdb.ErrNotDatabase) {
			err = fmt.Errorf("%s: %w", src.Name, damage)
		}
		return nil, err
	}
	if damage != nil {
		return nil, fmt.Errorf("%s: %w", src.Name, damage)
	}
	if c.Trailer != nil {
		if err := f.Truncate(c.FileSize - int64(len(c.Trailer))); err != nil {
			return nil, fmt.Errorf("cut off the SHA-256: %w", err)
		}
	}
	return c, nil
}

// copyAndCheck does the work of copyDatabase. What is wrong with the database
// is apart from what went wrong: a wrong SHA-256 says more.
func copyAndCheck(ctx context.Context, f *os.File, src RestoreSource, opts RestoreOptions, seen *keyWatch) (c *Copied, damage, err error) {
	file, err := fileOf(src.Reader)
	if err != nil {
		return nil, nil, err
	}
	if file == nil {
		sum, size, err := copyHashed(ctx, f, src, opts.Progress)
		if err != nil {
			return nil, nil, err
		}
		c = sum.finish(size)
		c.Report, damage = checkCopy(ctx, f, size, seen)
		return c, damage, context.Cause(ctx)
	}
	return copyFile(ctx, f, file, src, opts, seen)
}

// fileOf returns the file that a source is read from, nil where it is a
// stream.
func fileOf(r io.Reader) (*os.File, error) {
	switch r := r.(type) {
	case *os.File:
		return r, nil
	case interface{ File() (*os.File, error) }:
		return r.File()
	}
	return nil, nil
}

// copyFile lets the kernel copy a file. The copy is hashed close behind, and
// checked as soon as it is whole.
func copyFile(ctx context.Context, f, file *os.File, src RestoreSource, opts RestoreOptions, seen *keyWatch) (c *Copied, damage, err error) {
	pieces := make(chan int64, 1<<16) // ends of what was copied: never waited for
	s, size := newCopySum(), int64(0)
	var report *mvccdb.Report
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		n, err := copyInPieces(ctx, f, file, src, opts.Progress, pieces)
		close(pieces)
		if size = n; err != nil {
			return err
		}
		report, damage = checkCopy(ctx, f, n, seen)
		return context.Cause(ctx)
	})
	g.Go(func() error { return s.follow(f, pieces) })
	if err := g.Wait(); err != nil {
		return nil, nil, err
	}
	c = s.finish(size)
	c.Report = report
	return c, damage, nil
}

// copyInPieces copies a file in pieces of writeBehind, and tells where each
// ends.
func copyInPieces(ctx context.Context, f, file *os.File, src RestoreSource, progress func(done, total int64), pieces chan<- int64) (size int64, err error) {
	for {
		n, err := f.ReadFrom(&io.LimitedReader{R: file, N: writeBehind})
		if err != nil {
			return size, fmt.Errorf("copy %s: %w", src.Name, err)
		}
		if ctx.Err() != nil {
			return size, context.Cause(ctx)
		}
		startWriting(f, size, n)
		size += n
		progress(size, src.Size)
		if n == 0 {
			return size, nil
		}
		pieces <- size
	}
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
			n, ended, err := readPiece(src.Reader, b)
			if err != nil {
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
			if ended {
				return nil
			}
		}
	})
	err := g.Wait()
	return s, size, err
}

// readPiece fills b and reports whether the source ended. io.ReadFull would
// not do: it tells the same of a source that ended and of one that was cut.
func readPiece(r io.Reader, b []byte) (n int, ended bool, err error) {
	for n < len(b) {
		m, err := r.Read(b[n:])
		n += m
		if err == io.EOF {
			return n, true, nil
		}
		if err != nil {
			return n, false, err
		}
	}
	return n, false, nil
}

// copySum hashes a snapshot whose end is not known before it comes: the last bytes
// may be the trailer.
type copySum struct {
	hash.Hash
	tail []byte
}

// follow hashes f up to the ends that it is told of.
func (s *copySum) follow(f *os.File, ends <-chan int64) error {
	buf := make([]byte, copyPiece)
	at := int64(0)
	for end := range ends {
		for at < end {
			b := buf[:min(copyPiece, end-at)]
			if _, err := f.ReadAt(b, at); err != nil {
				return fmt.Errorf("read the copy: %w", err)
			}
			s.add(b)
			at += int64(len(b))
		}
	}
	return nil
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
