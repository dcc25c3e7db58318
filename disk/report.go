package disk

import (
	"context"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/etcdkit/etcdkit/internal/hint"
)

// Report is all that a measurement found out. Its JSON form is stable
// (docs/disk.md).
type Report struct {
	Path       string     `json:"path"`
	MeasuredAt time.Time  `json:"measuredAt"`
	Pattern    Pattern    `json:"pattern"`
	Method     string     `json:"method"` // how data got to the disk: fdatasync or O_DSYNC
	Size       int64      `json:"sizeBytes"`
	Block      int        `json:"blockBytes"`
	Jobs       int        `json:"jobs"`
	Gentle     bool       `json:"gentle,omitempty"`
	Filesystem Filesystem `json:"filesystem"`

	// Fsync, Write, IOPS and BytesPerSecond are those of the median round.
	Fsync          Latency  `json:"fsync"`
	Write          Latency  `json:"write"`
	Commit         *Latency `json:"commit,omitempty"` // of the database beside the log, pattern etcd
	IOPS           float64  `json:"iops"`
	BytesPerSecond float64  `json:"bytesPerSecond"`
	Rounds         []Round  `json:"rounds"`
	// Bandwidth is that of bulk data, nil where it was not measured.
	Bandwidth *Bandwidth `json:"bandwidth,omitempty"`
	// Histogram counts the syncs of all rounds, in buckets 1 % wide.
	Histogram []Bucket `json:"histogram"`

	Judgement
	Warnings []Warning `json:"warnings"`
	// Neighbours are the running etcds on the same filesystem.
	Neighbours []Neighbour `json:"etcd,omitempty"`
	// UnseenProcesses is how many processes could not be looked into.
	UnseenProcesses int `json:"unseenProcesses,omitempty"`

	// Compared sets an older report beside this one.
	Compared *Comparison `json:"compared,omitempty"`

	quoted  Round
	stopped bool // a gentle measurement has passed its bound
}

// The methods.
const (
	methodFdatasync = "fdatasync"
	methodODSync    = "O_DSYNC"
)

// Round is one measured round.
type Round struct {
	Fsync          Latency    `json:"fsync"`
	Write          Latency    `json:"write"`
	Commit         *Latency   `json:"commit,omitempty"`
	IOPS           float64    `json:"iops"`
	BytesPerSecond float64    `json:"bytesPerSecond"`
	TookSeconds    float64    `json:"tookSeconds"`
	Complete       bool       `json:"complete"` // false where the time was up before all was written
	Series         []Point    `json:"series,omitempty"`
	Bandwidth      *Bandwidth `json:"bandwidth,omitempty"` // of a pattern that moves bulk data

	fioSync, fioWrite fioLatency
}

// Point sums up the syncs that ended in one slot of time.
type Point struct {
	AtSeconds   float64 `json:"atSeconds"` // when the slot begins
	Count       int64   `json:"count"`
	MeanSeconds float64 `json:"meanSeconds"`
	MaxSeconds  float64 `json:"maxSeconds"`
}

func newReport(opts Options, fs Filesystem) *Report {
	method := methodFdatasync
	if opts.ODSync {
		method = methodODSync
	}
	return &Report{
		Path: opts.Dir, MeasuredAt: time.Now().UTC().Truncate(time.Second), Pattern: opts.Pattern, Method: method,
		Size: opts.Size, Block: opts.Block, Jobs: opts.Jobs, Gentle: opts.Gentle, Filesystem: fs,
		Warnings: []Warning{},
	}
}

// measure runs all that opts ask for.
func (r *Report) measure(ctx context.Context, opts Options) error {
	left, err := folders().SweepIn(opts.at)
	if err != nil {
		return fmt.Errorf("remove what an earlier run left: %w", err)
	}
	for _, l := range left {
		r.addWarning("leftover", "%s", l)
	}
	if need := opts.space(); r.Filesystem.TotalBytes > 0 && need > r.Filesystem.FreeBytes {
		err := fmt.Errorf("%s are needed in %s, %s are free", bytesOf(need), opts.Dir, bytesOf(r.Filesystem.FreeBytes))
		return hint.With(err, "free some space, or measure less with --size")
	}
	if !opts.Pattern.syncs() {
		return r.measureBulk(ctx, opts)
	}
	if err := r.measureSyncs(ctx, opts); err != nil {
		return err
	}
	return r.probeBandwidth(ctx, opts)
}

// measureSyncs runs the warm-up and the rounds of a pattern that syncs.
func (r *Report) measureSyncs(ctx context.Context, opts Options) error {
	all := newHistogram()
	perRound := opts.roundBytes()
	for i := range opts.Rounds + 1 {
		longest := opts.Duration
		if i == 0 {
			longest = min(longest, warmUpTime)
		}
		measured, sync, err := r.round(ctx, opts, pace{
			writes: opts.writes(), longest: longest, gentle: opts.Gentle,
			tell: func(done int64) {
				opts.Progress(perRound*int64(i)+done*perRound/opts.writes(), perRound*int64(opts.Rounds+1))
			},
		})
		if err != nil {
			return err
		}
		settle(ctx, opts.at)
		if i == 0 && !r.stopped {
			continue
		}
		r.Rounds = append(r.Rounds, measured)
		all.Merge(sync)
		if r.stopped {
			break
		}
	}
	r.quote(median(r.Rounds), all)
	return nil
}

// quote takes over the numbers of the round that speaks for all.
func (r *Report) quote(q Round, all *hdrhistogram.Histogram) {
	r.quoted = q
	r.Fsync, r.Write, r.Commit = q.Fsync, q.Write, q.Commit
	r.IOPS, r.BytesPerSecond = q.IOPS, q.BytesPerSecond
	r.Histogram = bucketsOf(all)
}

func (r *Report) round(ctx context.Context, opts Options, p pace) (Round, *hdrhistogram.Histogram, error) {
	prepared, err := opts.Pattern.begin()(ctx, opts, r.Filesystem)
	if err != nil {
		return Round{}, nil, err
	}
	recorders, err := prepared.run(ctx, p)
	if err != nil {
		return Round{}, nil, err
	}
	measured, sync := merge(recorders, opts.perSync(), p.gentle)
	if took := recorders[0].stopped; took > 0 {
		r.stopped = true
		r.addWarning("stopped", "%s", tooSlow(took))
	}
	measured.Complete = sync.TotalCount() == opts.writes()*int64(len(recorders))
	if prepared.bytes != nil {
		written := prepared.bytes()
		measured.Complete = written == opts.Size/int64(opts.Block)*int64(opts.Block)
		measured.BytesPerSecond = float64(written) / max(measured.TookSeconds, 1e-9)
	}
	if prepared.commits != nil {
		commits := latencyOf(prepared.commits)
		measured.Commit = &commits
	}
	return measured, sync, nil
}

// measureBulk runs the rounds of a pattern that moves bulk data.
func (r *Report) measureBulk(ctx context.Context, opts Options) error {
	for i := range opts.Rounds {
		start := time.Now()
		b, err := bandwidth(ctx, opts.at, r.Filesystem, transfer{
			size: opts.Size, block: opts.Block, longest: opts.Duration, random: opts.Pattern == Random,
			tell: func(done int64) { opts.Progress(opts.Size*int64(i)+done, opts.Size*int64(opts.Rounds)) },
		})
		if err != nil {
			return err
		}
		r.Rounds = append(r.Rounds, Round{
			BytesPerSecond: b.WriteBytesPerSecond, IOPS: b.WriteBytesPerSecond / float64(opts.Block),
			TookSeconds: time.Since(start).Seconds(), Complete: b.SizeBytes == opts.writes()*int64(opts.Block), Bandwidth: &b,
		})
	}
	quoted := medianBy(r.Rounds, func(r Round) float64 { return -r.BytesPerSecond })
	r.quoted = quoted
	r.IOPS, r.BytesPerSecond, r.Bandwidth = quoted.IOPS, quoted.BytesPerSecond, quoted.Bandwidth
	return nil
}

// probeBandwidth adds the bandwidth, which a class needs as much as its
// latency, to a measurement of syncs.
func (r *Report) probeBandwidth(ctx context.Context, opts Options) error {
	if opts.SkipBandwidth || opts.Gentle {
		r.addWarning("bandwidth", "bandwidth was not measured; the class rests on latency and IOPS alone")
		return nil
	}
	if fs := r.Filesystem; fs.TotalBytes > 0 && fs.FreeBytes < 4*probeSize {
		r.addWarning("bandwidth", "bandwidth was not measured, for only %s are free; the class rests on latency and IOPS alone", bytesOf(fs.FreeBytes))
		return nil
	}
	b, err := bandwidth(ctx, opts.at, r.Filesystem, transfer{size: probeSize, block: probeBlock, longest: probeTime, tell: func(int64) {}})
	if err != nil {
		return fmt.Errorf("measure bandwidth: %w", err)
	}
	r.Bandwidth = &b
	return nil
}

func (r *Report) addWarning(name, format string, args ...any) {
	r.Warnings = append(r.Warnings, Warning{Name: name, Text: fmt.Sprintf(format, args...)})
}
