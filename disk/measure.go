package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"
)

// An operation is one write that is on disk when it returns. It says when the
// write had ended and the sync began, or returns errOver where the round has
// written all already.
type operation func() (syncing time.Time, err error)

var errOver = errors.New("all is written")

// A round is a prepared round of a measurement: one operation for each writer,
// to be repeated, and what removes the traces.
type round struct {
	ops     []operation
	end     func() error
	commits *hdrhistogram.Histogram // of a database beside, complete after end; nil without one
	bytes   func() int64            // written, where not each sync has as many; else nil
}

const (
	// slot is the resolution of the time series.
	slot = 100 * time.Millisecond
	// maxSlots bounds the series of a long round, whose slots are longer.
	maxSlots = 600
	// grace is how long an interrupted run waits for a disk that does not answer:
	// for the sync that is under way, and for what was written to be removed.
	grace = 20 * time.Second
)

// recorder keeps the times of one writer in one round.
type recorder struct {
	write, sync *hdrhistogram.Histogram
	series      []point
	slot        time.Duration
	start, last time.Time
	busy        time.Duration // spent in operations
	stopped     time.Duration // the sync that a gentle measurement stopped at
}

// pace says how long and how hard to work.
type pace struct {
	writes  int64
	longest time.Duration
	gentle  bool
	tell    func(done int64) // called now and then
}

// point sums up the syncs that ended in one slot of time.
type point struct {
	count    int64
	sum, max time.Duration
}

func newRecorder(longest time.Duration) *recorder {
	width := max(slot, longest/maxSlots)
	return &recorder{
		write: newHistogram(), sync: newHistogram(),
		slot: width, series: make([]point, 0, longest/width+2),
	}
}

// add records one operation and reports whether a new slot of time has begun.
func (r *recorder) add(start, syncing, end time.Time) bool {
	took := end.Sub(syncing)
	// The bounds of the histograms are wider than any call can take, so
	// recording cannot fail.
	_ = r.write.RecordValue(int64(syncing.Sub(start)))
	_ = r.sync.RecordValue(int64(took))
	r.last = end
	r.busy += end.Sub(start)
	at, fresh := int(end.Sub(r.start)/r.slot), false
	for len(r.series) <= at {
		r.series, fresh = append(r.series, point{}), true
	}
	p := &r.series[at]
	p.count++
	p.sum += took
	p.max = max(p.max, took)
	return fresh
}

// repeat runs op at the given pace.
func repeat(ctx context.Context, op operation, p pace) (*recorder, error) {
	r := newRecorder(p.longest)
	r.start = time.Now()
	for i := range p.writes {
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
		start := time.Now()
		syncing, err := op()
		end := time.Now()
		if errors.Is(err, errOver) {
			return r, nil
		}
		if err != nil {
			return r, err
		}
		if r.add(start, syncing, end) {
			p.tell(i + 1)
		}
		if end.Sub(r.start) >= p.longest {
			break
		}
		if !p.gentle {
			continue
		}
		if took := end.Sub(syncing); took > gentleBound {
			r.stopped = took
			break
		}
		rest(ctx, pause(end.Sub(start)))
	}
	return r, nil
}

// run repeats the operations of a round side by side and removes its traces.
func (r round) run(ctx context.Context, p pace) ([]*recorder, error) {
	recorders := make([]*recorder, len(r.ops))
	g, gctx := errgroup.WithContext(ctx)
	for i, op := range r.ops {
		if i > 0 {
			p.tell = func(int64) {} // one writer speaks for all
		}
		p := p
		g.Go(func() (err error) {
			recorders[i], err = repeat(gctx, op, p)
			return err
		})
	}
	var groupErr error
	done := make(chan struct{})
	go func() {
		groupErr = g.Wait()
		close(done)
	}()
	select {
	case <-done:
		return recorders, joinEnd(groupErr, r.end)
	case <-ctx.Done():
		return nil, r.abandon(context.Cause(ctx), done, grace)
	}
}

// abandon ends a round that was interrupted, once its writers are done. Where
// that takes too long, what is left is swept by the next run.
func (r round) abandon(cause error, done <-chan struct{}, patience time.Duration) error {
	ended := make(chan error, 1)
	go func() {
		<-done
		ended <- joinEnd(cause, r.end)
	}()
	select {
	case err := <-ended:
		return err
	case <-time.After(patience):
		return fmt.Errorf("%w; the disk has not answered for %s", cause, patience)
	}
}

// merge sums up what the writers of one round recorded.
func merge(recorders []*recorder, block int64, gentle bool) (Round, *hdrhistogram.Histogram) {
	write, sync := newHistogram(), newHistogram()
	first, last := recorders[0].start, recorders[0].last
	var series []point
	for _, r := range recorders {
		write.Merge(r.write)
		sync.Merge(r.sync)
		if r.start.Before(first) {
			first = r.start
		}
		if r.last.After(last) {
			last = r.last
		}
		for len(series) < len(r.series) {
			series = append(series, point{})
		}
		for i, p := range r.series {
			series[i].count += p.count
			series[i].sum += p.sum
			series[i].max = max(series[i].max, p.max)
		}
	}
	took := last.Sub(first).Seconds()
	out := Round{
		Fsync: latencyOf(sync), Write: latencyOf(write), TookSeconds: took,
		Series:  pointsOf(series, recorders[0].slot),
		fioSync: fioLatencyOf(sync), fioWrite: fioLatencyOf(write),
	}
	if took > 0 {
		out.IOPS = float64(sync.TotalCount()) / took
	}
	if gentle { // one writer, and its rests do not count
		out.IOPS = float64(sync.TotalCount()) / max(recorders[0].busy.Seconds(), 1e-9)
	}
	out.BytesPerSecond = out.IOPS * float64(block)
	return out, sync
}

func pointsOf(series []point, width time.Duration) []Point {
	points := make([]Point, 0, len(series))
	for i, p := range series {
		if p.count == 0 {
			continue
		}
		points = append(points, Point{
			AtSeconds: (time.Duration(i) * width).Seconds(), Count: p.count,
			MeanSeconds: (p.sum / time.Duration(p.count)).Seconds(), MaxSeconds: p.max.Seconds(),
		})
	}
	return points
}

// median returns the round in the middle when ordered by p99; of two, the
// slower one.
func median(rounds []Round) Round {
	return medianBy(rounds, func(r Round) float64 { return r.Fsync.P99Seconds })
}

func medianBy(rounds []Round, cost func(Round) float64) Round {
	sorted := slices.SortedFunc(slices.Values(rounds), func(a, b Round) int { return cmp.Compare(cost(a), cost(b)) })
	return sorted[len(sorted)/2]
}

// blocks returns a source of blocks that neither compress nor repeat, so that
// no clever disk or filesystem saves itself the work.
func blocks(size int) func() []byte {
	const stride = 4093 // prime, so that the offsets take long to repeat
	data := make([]byte, size+1<<20)
	random := rand.NewChaCha8([32]byte{'d', 'i', 's', 'k'})
	_, _ = random.Read(data) // never fails
	at := 0
	return func() []byte {
		at = (at + stride) % (1 << 20)
		return data[at : at+size]
	}
}
