package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcdkit/etcdkit/internal/mvccdb"
	"github.com/etcdkit/etcdkit/internal/progress"
)

// Causes of a snapshot that is not whole.
var (
	ErrStalled    = errors.New("the stream stalled")
	ErrIncomplete = errors.New("the snapshot is not whole")
)

// receiver is the part of a snapshot stream that is read.
type receiver interface {
	Recv() (*pb.SnapshotResponse, error)
}

// stream reads a snapshot from etcd. It fails when etcd sends nothing for
// stall; time that the reader takes for itself does not count.
type stream struct {
	recv   receiver
	cancel context.CancelCauseFunc // ends the stream
	ctx    context.Context         // the stream's own
	stall  time.Duration
	update progress.Func

	rest  []byte
	got   int64
	total int64 // with the trailer, 0 until the first answer
}

func (s *stream) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		timer := time.AfterFunc(s.stall, func() { s.cancel(ErrStalled) })
		resp, err := s.recv.Recv()
		timer.Stop()
		if err != nil {
			return 0, s.explain(err)
		}
		if s.total == 0 {
			s.total = int64(len(resp.GetBlob())) + int64(resp.GetRemainingBytes()) + sha256.Size
		}
		s.rest = resp.GetBlob()
		s.got += int64(len(s.rest))
		s.update(s.got, s.total)
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// explain keeps the bare EOF and says of everything else how far it came.
func (s *stream) explain(err error) error {
	if err == io.EOF { //nolint:errorlint // only the bare EOF is an end
		return io.EOF
	}
	if cause := context.Cause(s.ctx); cause != nil {
		err = cause
	}
	if errors.Is(err, ErrStalled) {
		return fmt.Errorf("%w: no byte from etcd for %s, after %d bytes", ErrStalled, s.stall, s.got)
	}
	return fmt.Errorf("stream broke after %d bytes: %w", s.got, err)
}

// checked passes a snapshot on and checks the SHA-256 at its end. It ends with
// io.EOF only if that is right, so that whoever reads it never takes a broken
// snapshot for a whole one.
type checked struct {
	*trailed
	src     io.Reader
	lenient bool   // do not judge the trailer
	sum     string // of everything, once ended
	err     error

	examiner *mvccdb.Examiner // nil where nobody looks into it on the way
	// accept judges what the examiner found. A snapshot that it refuses ends with
	// its error, so that nobody stores it.
	accept func(*mvccdb.Streamed) error
}

func newChecked(src io.Reader) *checked { return &checked{trailed: newTrailed(), src: src} }

func (c *checked) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.src.Read(p)
	c.add(p[:n])
	if c.examiner != nil {
		_, _ = c.examiner.Write(p[:n]) // never fails
	}
	if err == io.EOF { //nolint:errorlint // only the bare EOF is an end
		err = c.end()
	}
	c.err = err
	return n, err
}

// close ends an examination that did not come to its end.
func (c *checked) close() {
	if c.examiner != nil {
		c.examiner.Close()
	}
}

func (c *checked) end() error {
	got, want, whole := c.finish()
	switch {
	case c.lenient:
	case c.n == 0:
		return fmt.Errorf("%w: it is empty", ErrIncomplete)
	case want == nil:
		return fmt.Errorf("%w: it ends after %d bytes without a SHA-256", ErrIncomplete, c.n)
	case !bytes.Equal(got[:], want):
		return fmt.Errorf("%w: its SHA-256 is %x…, its end says %x…", ErrIncomplete, got[:6], want[:6])
	}
	if c.examiner != nil {
		found, err := c.examiner.Finish(context.Background()) //nolint:forbidigo // a Reader has no context, and what is left takes a moment
		if err == nil {
			err = c.accept(found)
		}
		if err != nil {
			return err
		}
	}
	c.sum = hex.EncodeToString(whole[:])
	return io.EOF
}

// counted passes bytes on and keeps their number and SHA-256.
type counted struct {
	src  io.Reader
	hash hash.Hash // nil where somebody else computes it
	n    int64
	err  error // that src ended with, if not well
}

func newCounted(src io.Reader) *counted { return &counted{src: src, hash: sha256.New()} }

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.src.Read(p)
	if c.hash != nil {
		c.hash.Write(p[:n])
	}
	c.n += int64(n)
	if err != nil && err != io.EOF { // only the bare EOF is an end
		c.err = err
	}
	return n, err
}

func (c *counted) sum() string { return hex.EncodeToString(c.hash.Sum(nil)) }
