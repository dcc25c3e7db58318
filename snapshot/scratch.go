package snapshot

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/etcdkit/etcdkit/internal/freespace"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/mvccdb"
	"github.com/etcdkit/etcdkit/internal/regular"
	"github.com/etcdkit/etcdkit/internal/scratch"
)

// decoded is a decoded snapshot to look into: a temporary copy, or the local
// file itself.
type decoded struct {
	dir  string
	flag string // that chooses dir, for hints
	file *os.File
	temp *scratch.File // file, if it is a copy
	size int64
	err  error // why it could not be written
}

// tooLittle reports whether a folder has less free space than is needed, and how
// much it has. What cannot be known is not too little: the write will tell.
func tooLittle(dir string, need uint64) (free uint64, little bool) {
	free, err := freespace.Of(dir)
	return free, err == nil && free < need
}

// room fails where a folder has not as much free space as need.
func room(dir string, need int64, flag string) error {
	dir = cmp.Or(dir, os.TempDir())
	free, little := tooLittle(dir, uint64(max(need, 0)))
	if !little {
		return nil
	}
	return hint.With(fmt.Errorf("%w: %s has %d MiB free, %d MiB are needed", ErrNoSpace, dir, free>>20, (need+1<<20-1)>>20),
		"free some, or choose a folder with more space with %s", flag)
}

// use looks into a file where it is.
func (s *decoded) use(name string) (err error) {
	if s.file, s.err = regular.Open(name); s.err != nil {
		return s.err
	}
	info, err := s.file.Stat()
	if err != nil {
		s.err = err
		return err
	}
	s.size = info.Size()
	return nil
}

// fill copies a snapshot into a temporary file. An error that s.err does not
// hold is the snapshot's.
func (s *decoded) fill(src io.Reader) error {
	if err := s.create(); err != nil {
		return err
	}
	return copyAll(scratchWriter{s}, src)
}

// create makes the temporary file.
func (s *decoded) create() error {
	file, err := scratch.NewFile(s.dir, "etcdkit-scratch-")
	if err != nil {
		s.err = hint.With(fmt.Errorf("make a temporary copy: %w", err), "choose a folder with %s", s.flag)
		return s.err
	}
	s.file, s.temp = file.File, file
	return nil
}

// otherwise says what the file is where it is no database at all: of such a
// one a missing SHA-256 is not what is wrong.
func (s *decoded) otherwise(err error) error {
	if s.file == nil || !errors.Is(err, ErrIncomplete) {
		return err
	}
	if _, other := mvccdb.Open(s.file, s.size); errors.Is(other, mvccdb.ErrNotDatabase) {
		return other
	}
	return err
}

// scratchWriter keeps a failure to write apart from one to read.
type scratchWriter struct{ *decoded }

func (w scratchWriter) Write(p []byte) (int, error) {
	n, err := w.file.Write(p)
	w.size += int64(n)
	if err != nil {
		w.err = fmt.Errorf("make a temporary copy: %w", err)
		if errors.Is(err, syscall.ENOSPC) {
			w.err = hint.With(w.err, "choose a folder with more space with %s", w.flag)
		}
		return n, w.err
	}
	return n, nil
}

// remove removes a temporary copy.
func (s *decoded) remove() {
	if s.file == nil {
		return
	}
	if s.temp != nil {
		_ = s.temp.Close()
		return
	}
	_ = s.file.Close()
}
