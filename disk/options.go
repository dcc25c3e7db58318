package disk

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/etcdkit/etcdkit/internal/dirfd"
	"github.com/etcdkit/etcdkit/internal/progress"
)

// Pattern is the way in which a measurement writes.
type Pattern string

// The patterns.
const (
	// Fio writes records one after the other, fdatasync after each: the fio
	// job that the etcd community uses.
	Fio Pattern = "fio"
	// WAL writes etcd's own log: segments allocated ahead and cut, records with
	// checksums, one fdatasync for each batch of Jobs entries.
	WAL Pattern = "wal"
	// Etcd is a member of etcd itself, in a folder of its own, that serves Jobs
	// clients while a snapshot of it is read. Its database commits every 100 ms.
	Etcd Pattern = "etcd"
	// Sequential writes large blocks one after the other and reads them back,
	// as a member does that receives a snapshot and then opens it.
	Sequential Pattern = "sequential"
	// Random does so in random order.
	Random Pattern = "random"
)

// Patterns returns every pattern.
func Patterns() []Pattern { return []Pattern{Fio, WAL, Etcd, Sequential, Random} }

// syncs reports whether the pattern waits for a sync after each write, as
// opposed to moving bulk data.
func (p Pattern) syncs() bool { return p != Sequential && p != Random }

// Options says what to measure. The zero value of every field but Dir is the
// usual measurement.
type Options struct {
	Dir      string
	Pattern  Pattern       // "" means Fio
	Size     int64         // bytes that one round writes to a file
	Block    int           // bytes in one write
	Rounds   int           // measured rounds; a warm-up comes before them
	Duration time.Duration // the longest that one round may take
	Jobs     int           // writers at once, each with its own file; for WAL entries in a batch, for Etcd clients
	ODSync   bool          // open with O_DSYNC instead of calling fdatasync
	// Gentle writes little and rests after each write, for a disk that a
	// running etcd lives on.
	Gentle bool
	// Force measures at full speed whoever lives there.
	Force bool
	// SkipBandwidth leaves out the writing and reading of bulk data that
	// follows the rounds of a pattern that syncs.
	SkipBandwidth bool
	Require       Requirements  // what the disk must reach; none means etcd's minimum
	Progress      progress.Func // told the bytes written; nil means nobody asks

	at *dirfd.Dir // Dir, opened once for the whole measurement
}

const (
	// fioSize and fioBlock are the job's well-known numbers: the record size
	// was taken from etcd's own writes, the size makes some 10,000 of them.
	fioSize  = 22 << 20
	fioBlock = 2300

	// roundTime keeps a run on a disk that needs 10 ms a sync near two
	// minutes, with some 2,000 samples in every round.
	roundTime = 20 * time.Second
	bulkTime  = 2 * time.Minute
	// warmUpTime is enough for caches and power states to settle.
	warmUpTime = 5 * time.Second

	maxSize   = 1 << 50
	maxBlock  = 64 << 20
	maxRounds = 1000
	maxJobs   = 1024
	maxTime   = 24 * time.Hour
)

// defaults returns the numbers of a pattern, or false if there is none.
func (p Pattern) defaults() (Options, bool) {
	switch p {
	case Fio:
		return Options{Size: fioSize, Block: fioBlock, Rounds: 5, Duration: roundTime}, true
	case WAL, Etcd:
		// More than one segment, so that a cut is in it.
		return Options{Size: 80 << 20, Block: fioBlock, Rounds: 3, Duration: roundTime}, true
	case Sequential:
		return Options{Size: 1 << 30, Block: 1 << 20, Rounds: 3, Duration: bulkTime}, true
	case Random:
		return Options{Size: 1 << 30, Block: 64 << 10, Rounds: 3, Duration: bulkTime}, true
	}
	return Options{}, false
}

// complete returns opts with defaults filled in, or what is wrong with them.
func (o Options) complete() (Options, error) {
	o.Pattern = cmp.Or(o.Pattern, Fio)
	def, ok := o.Pattern.defaults()
	if !ok {
		return o, fmt.Errorf("%w: no pattern %q; there are %v", ErrOptions, o.Pattern, Patterns())
	}
	o.Block = cmp.Or(o.Block, def.Block)
	if o.Gentle {
		def.Size, def.Rounds = gentleWrites*int64(o.Block), gentleRounds
	}
	o.Size = cmp.Or(o.Size, def.Size)
	o.Rounds = cmp.Or(o.Rounds, def.Rounds)
	o.Duration = cmp.Or(o.Duration, def.Duration)
	o.Jobs = cmp.Or(o.Jobs, 1)
	if o.Progress == nil {
		o.Progress = progress.Discard
	}
	return o, o.validate()
}

func (o Options) validate() error {
	if o.Duration < 0 || o.Duration > maxTime {
		return fmt.Errorf("%w: duration %s is not between 0 and %s", ErrOptions, o.Duration, maxTime)
	}
	for _, limit := range []struct {
		what     string
		got, max int64
	}{
		{"size", o.Size, maxSize},
		{"block", int64(o.Block), maxBlock},
		{"rounds", int64(o.Rounds), maxRounds},
		{"jobs", int64(o.Jobs), maxJobs},
	} {
		if limit.got < 1 || limit.got > limit.max {
			return fmt.Errorf("%w: %s %d is not from 1 to %d", ErrOptions, limit.what, limit.got, limit.max)
		}
	}
	switch {
	case o.perSync() > o.Size:
		return fmt.Errorf("%w: a write of %d bytes does not fit in a size of %d", ErrOptions, o.perSync(), o.Size)
	case !o.Pattern.syncs() && (o.Jobs > 1 || o.ODSync):
		return fmt.Errorf("%w: pattern %s has one writer and syncs now and then; jobs and O_DSYNC are for those that sync after each write", ErrOptions, o.Pattern)
	case o.Pattern == Etcd && o.Block > maxPut:
		return fmt.Errorf("%w: block %d: etcd takes puts of at most %d bytes", ErrOptions, o.Block, maxPut)
	case o.Gentle && (o.Pattern != Fio || o.Jobs > 1):
		return fmt.Errorf("%w: a gentle measurement has pattern %s and one writer", ErrOptions, Fio)
	case o.Pattern.keepsLog() && o.ODSync:
		return fmt.Errorf("%w: pattern %s syncs as etcd's log does, without O_DSYNC", ErrOptions, o.Pattern)
	}
	return nil
}

// keepsLog reports whether the pattern writes etcd's log, in one file at a time.
func (p Pattern) keepsLog() bool { return p == WAL || p == Etcd }

// roundBytes is how many bytes a whole round writes.
func (o Options) roundBytes() int64 {
	if o.Pattern.keepsLog() {
		return o.Size
	}
	return o.Size * int64(o.Jobs)
}

// space is how many bytes a round may take on the disk.
func (o Options) space() int64 {
	need := o.roundBytes()
	if o.Pattern.keepsLog() {
		need += segments()
	}
	if o.Pattern == Etcd {
		need += 2 * (o.Size + filled) // the same data again in the database, whose pages are not full
	}
	return need
}

// begin returns what prepares a round of a pattern that syncs.
func (p Pattern) begin() func(context.Context, Options, Filesystem) (round, error) {
	switch p {
	case WAL:
		return beginWAL
	case Etcd:
		return beginMember
	}
	return beginFiles
}

// perSync is how many bytes one sync brings to the disk, or the least of them.
func (o Options) perSync() int64 {
	if o.Pattern == WAL {
		return int64(o.Block) * int64(o.Jobs)
	}
	return int64(o.Block)
}

// writes is how many times one writer syncs in a whole round, at most.
func (o Options) writes() int64 { return o.Size / o.perSync() }
