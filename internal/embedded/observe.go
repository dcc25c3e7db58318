package embedded

import (
	"time"
	_ "unsafe" // for go:linkname

	"github.com/prometheus/client_golang/prometheus"
	_ "go.etcd.io/etcd/server/v3/storage/backend" // whose commitSec is observed
	_ "go.etcd.io/etcd/server/v3/storage/wal"     // whose walFsyncSec is observed
)

// etcd's histograms of what it waits for on the disk. Their buckets begin at
// 1 ms and double, and nothing tells the single times, so these variables are
// looked at from the side. With a release of etcd that renames them this links,
// and is told nothing: the test of Observe finds that.
//
//go:linkname walFsync go.etcd.io/etcd/server/v3/storage/wal.walFsyncSec
//go:linkname commit go.etcd.io/etcd/server/v3/storage/backend.commitSec
//nolint:gochecknoglobals // they are etcd's
var walFsync, commit prometheus.Histogram

// Observe calls walSync with the time of each fdatasync of a write-ahead log,
// and committed with that of each commit of a database, by any member of this
// process, until stop. It is called before members start, and stop after they
// have stopped. The functions are called while etcd waits, from several
// goroutines.
func Observe(walSync, committed func(time.Duration)) (stop func()) {
	oldSync, oldCommit := walFsync, commit
	walFsync, commit = observed{oldSync, walSync}, observed{oldCommit, committed}
	return func() { walFsync, commit = oldSync, oldCommit }
}

// observed is a histogram that tells what it takes in.
type observed struct {
	prometheus.Histogram
	tell func(time.Duration)
}

func (o observed) Observe(seconds float64) {
	o.Histogram.Observe(seconds)
	o.tell(time.Duration(seconds * float64(time.Second)))
}
