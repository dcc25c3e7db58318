package utl

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/mvccdb"
	"github.com/etcdkit/etcdkit/internal/regular"
	"github.com/etcdkit/etcdkit/snapshot"
)

// open opens a file for a command that judges it: what cannot be looked at is
// no verdict, what is damaged is one.
func (t *tree) open(ctx context.Context, path string) (*snapshot.File, error) {
	if t.upstream() {
		if err := upstreamCannotOpen(path); err != nil {
			return nil, err
		}
	}
	f, err := snapshot.OpenFile(ctx, path, t.lockWait)
	if err != nil {
		return nil, t.judged(err)
	}
	return f, nil
}

// upstreamCannotOpen says what upstream says of files that are too short, and
// of directories, which it does not look into.
func upstreamCannotOpen(path string) error {
	const twoPages = 2 * 4096
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return errInvalidDatabase
	case info.Size() == 0:
		return fmt.Errorf("write %s: bad file descriptor", path)
	}
	b := make([]byte, 4)
	f, err := regular.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.ReadAt(b, 16); err == nil && info.Size() < twoPages && binary.LittleEndian.Uint32(b) == 0xED0CDAED {
		return fmt.Errorf("file size too small %d", info.Size())
	}
	return nil
}

// errInvalidDatabase is upstream's word for what is no database.
var errInvalidDatabase = errors.New("invalid database")

// exists looks for a file before anything else, as upstream does and says.
func (t *tree) exists(path string) error {
	if !t.upstream() {
		return nil
	}
	_, err := os.Stat(path)
	return err
}

// judged gives an error about a file its kind.
func (t *tree) judged(err error) error {
	if t.upstream() {
		return upstreamWords(err)
	}
	return Judged(err)
}

// Judged gives an error about a database file its kind, for a command that
// judges the file.
func Judged(err error) error {
	_, cannotRead := errors.AsType[*fs.PathError](err)
	switch {
	case errors.Is(err, mvccdb.ErrDamaged), errors.Is(err, mvccdb.ErrNotDatabase):
		return cli.Verdict(err)
	case errors.Is(err, snapshot.ErrLocked), cannotRead:
		return cli.CannotTell(err)
	}
	return err
}

// upstreamWords says what upstream's programs say, where they say something
// and do not crash.
func upstreamWords(err error) error {
	if sum, ok := errors.AsType[*snapshot.ChecksumError](err); ok {
		return fmt.Errorf("expected sha256 %v, got %v", sum.Want, sum.Got)
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path
	}
	switch {
	case errors.Is(err, snapshot.ErrNoTrailer):
		return errors.New("snapshot missing hash but --skip-hash-check=false")
	case errors.Is(err, mvccdb.ErrNotDatabase):
		return errInvalidDatabase
	}
	return err
}
