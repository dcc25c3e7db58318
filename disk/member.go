package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/etcdkit/etcdkit/internal/embedded"
)

const (
	// memberTime bounds how long a member may take to start and to be filled.
	memberTime = time.Minute
	// filled is how much a round's member holds before it is measured, so that
	// its commits and snapshots are those of a cluster in use.
	filled = 32 << 20
	// fillBlock and fillTxn fill it fast, within etcd's limits for a request.
	fillBlock, fillTxn = 10 << 10, 100
	// snapshotRate is how fast snapshots are read, in bytes a second, as over a
	// network that others use, too; snapshotChunk how much at once.
	snapshotRate, snapshotChunk = 16 << 20, 256 << 10
	// framing is what a key and etcd's encoding add to a value in the log.
	framing = 100
	// maxPut is the largest block of pattern etcd: a request may have 1.5 MiB.
	maxPut = 1 << 20
	// clientKeys is how many keys each client writes in turn.
	clientKeys = 1000
)

// member is an etcd that serves puts on the disk to be measured.
type member struct {
	cluster *embedded.Cluster
	client  *clientv3.Client
	syncs   chan time.Duration // of the log
	over    chan struct{}      // closed when nobody takes them any more
	counts  atomic.Bool        // whether syncs are taken: not while it starts
	commits *hdrhistogram.Histogram
	written chan struct{} // closed when the clients have put all
	bytes   atomic.Int64  // put and acknowledged
}

// beginMember prepares a round of pattern etcd: a member of its own serves puts
// while a snapshot is read, and the syncs of its log are measured. It is etcd
// itself, for what a sync takes depends on what goes on beside it: on the disk,
// and on the processors, which the kernel's part of a sync needs, too.
func beginMember(ctx context.Context, opts Options, _ Filesystem) (_ round, err error) {
	s, err := folders().NewIn(opts.at)
	if err != nil {
		return round{}, err
	}
	m := &member{
		syncs: make(chan time.Duration, 1024), over: make(chan struct{}), written: make(chan struct{}), commits: newHistogram(),
	}
	stopObserving := embedded.Observe(m.synced, m.committed)
	// Clients are programs of their own: what they take of the processors, they
	// take from the kernel, and not from the member's share of this program.
	processors := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(2 * processors)
	ctx, stop := context.WithCancel(ctx)
	g, ctx := errgroup.WithContext(ctx)
	end := func() error {
		stop()
		close(m.over)
		err := errors.Join(ignoreCancel(g.Wait()), m.stop())
		stopObserving()
		runtime.GOMAXPROCS(processors)
		return errors.Join(err, s.Remove())
	}
	if err := m.start(ctx, s.Through()); err != nil {
		return round{}, joinEnd(err, end)
	}
	m.counts.Store(true)
	g.Go(func() error { return m.putAll(ctx, opts) })
	g.Go(func() error { return m.readSnapshots(ctx) })
	return round{
		ops: []operation{func() (time.Time, error) { return m.nextSync(ctx) }},
		end: end, commits: m.commits, bytes: m.bytes.Load,
	}, nil
}

func (m *member) synced(took time.Duration) {
	if !m.counts.Load() {
		return
	}
	select {
	case m.syncs <- took:
	case <-m.over:
	}
}

// committed is called under a lock of the one database.
func (m *member) committed(took time.Duration) {
	if m.counts.Load() {
		_ = m.commits.RecordValue(int64(took)) // its bounds are wider than any commit
	}
}

// start starts the member in dir and fills it.
func (m *member) start(ctx context.Context, dir string) (err error) {
	starting, cancel := context.WithTimeoutCause(ctx, memberTime, fmt.Errorf("etcd did not serve within %s", memberTime))
	defer cancel()
	m.cluster, err = embedded.Start(starting, embedded.Options{Dir: dir, Fsync: true, Configure: func(_ int, cfg *embed.Config) {
		cfg.QuotaBackendBytes = -1 // the space was looked at before
	}})
	if err != nil {
		return err
	}
	m.client, err = clientv3.New(clientv3.Config{Endpoints: m.cluster.Endpoints(), Logger: zap.NewNop(), Context: ctx})
	if err != nil {
		return err
	}
	next := blocks(fillBlock)
	for n := 0; n < filled; {
		var puts []clientv3.Op
		for range fillTxn {
			puts = append(puts, clientv3.OpPut("fill/"+strconv.Itoa(n), string(next())))
			n += fillBlock
		}
		if _, err := m.client.Txn(starting).Then(puts...).Commit(); err != nil {
			return m.because(starting, fmt.Errorf("fill a member: %w", err))
		}
	}
	return nil
}

// because returns why the member failed, or the run was ended, instead of what
// its clients saw of that.
func (m *member) because(ctx context.Context, err error) error {
	return cmp.Or(m.cluster.Err(), context.Cause(ctx), err)
}

// putAll has every client put, one value after the other, until all are done.
func (m *member) putAll(ctx context.Context, opts Options) error {
	g, ctx := errgroup.WithContext(ctx)
	var left atomic.Int64
	left.Store(opts.Size / int64(opts.Block))
	for i := range opts.Jobs {
		next := blocks(max(1, opts.Block-framing))
		g.Go(func() error {
			for n := 0; left.Add(-1) >= 0; n++ {
				key := fmt.Sprintf("client/%d/%d", i, n%clientKeys)
				_, err := m.client.Put(ctx, key, string(next()))
				if isLate(err) {
					continue // a very slow disk, and this is how slow
				}
				if err != nil {
					return m.because(ctx, fmt.Errorf("put: %w", err))
				}
				m.bytes.Add(int64(opts.Block))
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	close(m.written)
	return nil
}

// isLate reports whether a member could not answer in time, or lost its
// leadership over that.
func isLate(err error) bool {
	return slices.ContainsFunc([]error{
		rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrLeaderChanged, rpctypes.ErrNoLeader, rpctypes.ErrTooManyRequests,
	}, func(late error) bool { return errors.Is(err, late) })
}

// nextSync waits until the member has synced its log once more.
func (m *member) nextSync(ctx context.Context) (syncing time.Time, err error) {
	select {
	case took := <-m.syncs:
		return time.Now().Add(-took), nil
	case <-m.written:
		return time.Time{}, errOver
	case <-m.cluster.Failed():
		return time.Time{}, m.cluster.Err()
	case <-ctx.Done():
		return time.Time{}, context.Cause(ctx)
	}
}

// readSnapshots reads the database again and again, as a backup does.
func (m *member) readSnapshots(ctx context.Context) error {
	limit := rate.NewLimiter(snapshotRate, snapshotChunk)
	for {
		if err := m.readSnapshot(ctx, limit); err != nil {
			return m.because(ctx, fmt.Errorf("read a snapshot: %w", err))
		}
	}
}

func (m *member) readSnapshot(ctx context.Context, limit *rate.Limiter) (err error) {
	r, err := m.client.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for {
		switch _, err := io.CopyN(io.Discard, r, snapshotChunk); {
		case err == nil:
		case errors.Is(err, io.EOF):
			return nil
		default:
			return err
		}
		if err := limit.WaitN(ctx, snapshotChunk); err != nil {
			return err
		}
	}
}

// stop stops what was started.
func (m *member) stop() (err error) {
	if m.client != nil {
		err = ignoreCancel(m.client.Close())
	}
	if m.cluster != nil {
		err = errors.Join(err, m.cluster.Close())
	}
	return err
}

func ignoreCancel(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
