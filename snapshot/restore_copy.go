package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/mvccdb"
)

// Sizes of the copy: what is read, hashed and written at once, while it is in
// the processor's cache, and how many of those are in flight. Larger writes cost
// more: the kernel then looks for larger free blocks of memory.
const (
	copyPiece  = 64 << 10
	copyPieces = 64
)

// copyDatabase copies the snapshot into the target, hashes it on the way and
// checks it. Where the source is a file, the check reads the same file
// meanwhile; a stream is checked by what arrived, while it is still in memory.
func copyDatabase(ctx context.Context, src RestoreSource, t *stagedDir, opts RestoreOptions, seen *keyWatch) (c *Copied, err error) {
	out, err := createCopy(t.database())
	if err != nil {
		return nil, fmt.Errorf("create the database: %w", err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	c, damage, err := copyAndCheck(ctx, out, src, opts, seen)
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
	if err := out.finish(c.FileSize - int64(len(c.Trailer))); err != nil {
		return nil, err
	}
	return c, c.patch(out.File)
}

// copyAndCheck does the work of copyDatabase. What is wrong with the database
// is apart from what went wrong: a wrong SHA-256 says more.
func copyAndCheck(ctx context.Context, out *copyFile, src RestoreSource, opts RestoreOptions, seen *keyWatch) (c *Copied, damage, err error) {
	file, err := fileOf(src.Reader)
	if err != nil {
		return nil, nil, err
	}
	if file != nil {
		src.Reader = file
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			return copyAlongside(ctx, out, file, info, src, opts, seen)
		}
	}
	if c, err = copyHashed(ctx, out, src, opts.Progress); err != nil {
		return nil, nil, err
	}
	damage = c.check(ctx, out, c.FileSize, seen)
	return c, damage, context.Cause(ctx)
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

// copyAlongside copies a file and checks it at the same time.
func copyAlongside(ctx context.Context, out *copyFile, file *os.File, info os.FileInfo, src RestoreSource, opts RestoreOptions, seen *keyWatch) (c *Copied, damage, err error) {
	out.clone(file)
	var checked Copied
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		c, err = copyHashed(ctx, out, src, opts.Progress)
		return err
	})
	g.Go(func() error {
		damage = checked.check(ctx, file, info.Size(), seen)
		return context.Cause(ctx)
	})
	if err := g.Wait(); err != nil {
		return nil, nil, err
	}
	if after, err := file.Stat(); err != nil || after.Size() != info.Size() || !after.ModTime().Equal(info.ModTime()) || c.FileSize != info.Size() {
		return nil, nil, hint.With(fmt.Errorf("%s: %w", src.Name, ErrChanged), "restore from a file that nobody writes")
	}
	c.Report, c.patches = checked.Report, checked.patches
	return c, damage, nil
}

// check checks every page and every revision of the database that r serves.
func (c *Copied) check(ctx context.Context, r io.ReaderAt, size int64, seen *keyWatch) error {
	db, err := mvccdb.Open(r, size)
	if err != nil {
		return err
	}
	report, err := db.Check(ctx, mvccdb.CheckOptions{SkipTrailer: true, Watch: seen.watch})
	if err != nil {
		return err
	}
	if report.DamageCount > 0 {
		return &DamageError{First: report.Damage[0], Count: report.DamageCount}
	}
	c.Report = report
	c.patches, err = db.Freelist(report.Free)
	return err
}

// replay applies the log of the source to the copied database, and checks the
// result as the source was checked.
func (c *Copied) replay(ctx context.Context, src RestoreSource, path string, log *zap.Logger, seen **keyWatch) (err error) {
	if src.Log == nil {
		return nil
	}
	if c.Replayed, err = src.Log.replay(ctx, path, log); err != nil || c.Replayed.Entries == 0 {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("check the applied write-ahead log: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("check the applied write-ahead log: %w", err)
	}
	*seen = newKeyWatch()
	if err := c.check(ctx, f, info.Size(), *seen); err != nil {
		return fmt.Errorf("check the applied write-ahead log: %w", err)
	}
	return c.patch(f)
}

// patch spares bbolt the walk through all pages for the free ones, which the
// check has found.
func (c *Copied) patch(f *os.File) error {
	for _, p := range c.patches {
		if _, err := f.WriteAt(p.Bytes, p.Offset); err != nil {
			return fmt.Errorf("write the free pages: %w", err)
		}
	}
	return nil
}

// copyHashed writes src to out, and hashes it while the disk is busy.
func copyHashed(ctx context.Context, out *copyFile, src RestoreSource, progress func(done, total int64)) (*Copied, error) {
	free, read := make(chan []byte, copyPieces), make(chan []byte, copyPieces)
	for range copyPieces {
		free <- make([]byte, copyPiece)
	}
	s := newTrailed()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(read)
		return readPieces(ctx, src, s, free, read)
	})
	g.Go(func() error {
		for p := range read {
			if err := out.write(p); err != nil {
				return fmt.Errorf("write the database: %w", err)
			}
			progress(out.size, src.Size)
			free <- p[:copyPiece]
		}
		return nil
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return copiedOf(s), nil
}

// readPieces reads and hashes src to its end.
func readPieces(ctx context.Context, src RestoreSource, s *trailed, free <-chan []byte, to chan<- []byte) error {
	for {
		var p []byte
		select {
		case p = <-free:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		n, ended, err := readPiece(src.Reader, p)
		if err != nil {
			return fmt.Errorf("read %s: %w", src.Name, err)
		}
		if s.n == 0 && !ended {
			if err := src.checkBeginning(p[:n]); err != nil {
				return err
			}
		}
		s.add(p[:n])
		to <- p[:n]
		if ended {
			return nil
		}
	}
}

// checkBeginning refuses a stream of unknown length that does not begin as a
// database, before all of it is on the disk: it may have no end.
func (s RestoreSource) checkBeginning(b []byte) error {
	if s.Size > 0 {
		return nil
	}
	if _, err := mvccdb.Open(bytes.NewReader(b), int64(len(b))); err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	return nil
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

// copiedOf says what was hashed.
func copiedOf(s *trailed) *Copied {
	c := &Copied{FileSize: s.n}
	c.DatabaseSHA256, c.Trailer, c.FileSHA256 = s.finish()
	return c
}
