package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"

	"github.com/etcdkit/etcdkit/internal/dirfd"
)

// Bandwidth is how fast a lot of data is written and read back, as a member
// does that recovers from a snapshot.
type Bandwidth struct {
	SizeBytes           int64   `json:"sizeBytes"`
	BlockBytes          int     `json:"blockBytes"`
	WriteBytesPerSecond float64 `json:"writeBytesPerSecond"`
	// ReadBytesPerSecond is 0 where the page cache cannot be bypassed, so that
	// memory would have been measured.
	ReadBytesPerSecond float64 `json:"readBytesPerSecond,omitempty"`
}

const (
	// probeSize is enough to outlast a small cache and little enough to not
	// matter on a disk that etcd fits on.
	probeSize  = 128 << 20
	probeBlock = 1 << 20
	probeTime  = 10 * time.Second
	// syncEvery bounds what waits in memory, and so the time of one sync.
	syncEvery = 16 << 20
)

// transfer is one file to be written and read back.
type transfer struct {
	size    int64
	block   int
	longest time.Duration // of writing, and again of reading
	random  bool          // in random instead of ascending order
	tell    func(bytes int64)
}

// order returns the block numbers in the order of access.
func (t transfer) order() []int {
	n := int(t.size / int64(t.block))
	if t.random {
		return rand.Perm(n)
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

// bandwidth writes a new file and reads it back past the page cache.
func bandwidth(ctx context.Context, dir *dirfd.Dir, fs Filesystem, t transfer) (_ Bandwidth, err error) {
	s, err := folders().NewIn(dir)
	if err != nil {
		return Bandwidth{}, err
	}
	defer func() { err = joinEnd(err, s.Remove) }()
	opened, err := create(s, 0, t.size, false, false)
	if err != nil {
		return Bandwidth{}, err
	}
	f := opened.(synced).File
	defer func() { err = errors.Join(err, f.Close()) }()
	if fs.unlinks() {
		_ = s.Remove() // where that is too early, the deferred one does it
	}
	order := t.order()
	written, rate, err := t.write(ctx, f, order)
	if err != nil {
		return Bandwidth{}, err
	}
	b := Bandwidth{SizeBytes: int64(written) * int64(t.block), BlockBytes: t.block, WriteBytesPerSecond: rate}
	if forget(f) {
		b.ReadBytesPerSecond, err = t.read(ctx, f, order[:written])
	}
	return b, err
}

// write writes the blocks in order and returns how many were written until the
// time was up, and their bytes in a second, syncs included.
func (t transfer) write(ctx context.Context, f *os.File, order []int) (written int, rate float64, err error) {
	next, start, dirty := blocks(t.block), time.Now(), 0
	for _, n := range order {
		if ctx.Err() != nil {
			return written, 0, context.Cause(ctx)
		}
		if _, err := f.WriteAt(next(), int64(n)*int64(t.block)); err != nil {
			return written, 0, err
		}
		written++
		if dirty += t.block; dirty < syncEvery {
			continue
		}
		if err := fileutil.Fdatasync(f); err != nil {
			return written, 0, err
		}
		dirty = 0
		t.tell(int64(written) * int64(t.block))
		if time.Since(start) > t.longest {
			break
		}
	}
	if err := fileutil.Fdatasync(f); err != nil {
		return written, 0, err
	}
	return written, rateOf(written, t.block, start), nil
}

func (t transfer) read(ctx context.Context, f *os.File, order []int) (float64, error) {
	buf, start, done := make([]byte, t.block), time.Now(), 0
	for _, n := range order {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if _, err := f.ReadAt(buf, int64(n)*int64(t.block)); err != nil && !errors.Is(err, io.EOF) {
			return 0, fmt.Errorf("read back: %w", err)
		}
		done++
		if time.Since(start) > t.longest {
			break
		}
	}
	return rateOf(done, t.block, start), nil
}

func rateOf(n, block int, start time.Time) float64 {
	return float64(n) * float64(block) / max(time.Since(start).Seconds(), 1e-9)
}
