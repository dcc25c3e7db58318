package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/etcdkit/etcdkit/internal/mvccdb"
)

// ErrClusters says that data directories are of different clusters.
var ErrClusters = errors.New("the data directories are of different clusters")

// Candidate is a data directory that a cluster could be recovered from.
type Candidate struct {
	DataDir  string
	WALDir   string // "" where the log is in its usual place
	Problem  string // why it cannot be used, "" if it can
	Locked   bool   // a running etcd holds it
	Report   *mvccdb.Report
	Log      *LogState // nil where it cannot be read
	LogError string
}

// Usable reports whether the directory can be recovered from at all.
func (c *Candidate) Usable() bool { return c.Problem == "" }

// LastEntry returns term and index of the newest entry that the directory
// holds: the end of its log, to which a restore from it leads.
func (c *Candidate) LastEntry() (term, index uint64) {
	if c.Log != nil {
		return c.Log.LastTerm, c.Log.Last
	}
	if c.Report == nil {
		return 0, 0
	}
	return c.Report.State.Term, c.Report.State.ConsistentIndex
}

// Place is where the files of a member are.
type Place struct {
	DataDir string
	WALDir  string // "" means inside DataDir
}

// Compare looks at the data directories of the members of one cluster and
// returns them in the order given, with the place of the best one to recover
// from: undamaged, and with the newest entry as raft orders them, by term and
// then by index. best is -1 where none can be used, or with ErrClusters.
func Compare(ctx context.Context, places []Place, wait time.Duration) (all []*Candidate, best int, err error) {
	best = -1
	for _, p := range places {
		c, err := candidateOf(ctx, p, wait)
		if err != nil {
			return nil, -1, err
		}
		all = append(all, c)
	}
	if err := oneCluster(all); err != nil {
		return all, -1, err
	}
	for i, c := range all {
		if c.Usable() && (best < 0 || newer(c, all[best])) {
			best = i
		}
	}
	return all, best, nil
}

// oneCluster refuses logs of different clusters: their entries cannot be
// compared.
func oneCluster(all []*Candidate) error {
	clusters := make(map[string]string)
	var ids []string
	for _, c := range all {
		if c.Log != nil && c.Log.ClusterID != 0 {
			cluster := id(c.Log.ClusterID)
			if !slices.Contains(ids, cluster) {
				ids = append(ids, cluster)
			}
			clusters[cluster] = c.DataDir
		}
	}
	if len(ids) > 1 {
		return fmt.Errorf("%w: %s", ErrClusters, describe(clusters))
	}
	return nil
}

// newer reports whether a's log ends after b's.
func newer(a, b *Candidate) bool {
	termA, indexA := a.LastEntry()
	termB, indexB := b.LastEntry()
	return compareEntries(termA, indexA, termB, indexB) > 0
}

// candidateOf reads one data directory. Only the end of ctx is an error: all
// else is a finding.
func candidateOf(ctx context.Context, p Place, wait time.Duration) (c *Candidate, err error) {
	c = &Candidate{DataDir: p.DataDir, WALDir: p.WALDir}
	d, err := openDatabaseOf(ctx, p.DataDir, wait)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		c.Problem, c.Locked = err.Error(), errors.Is(err, ErrLocked)
		return c, nil
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if c.Report, err = d.File.Check(ctx, mvccdb.CheckOptions{SkipTrailer: true}); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		c.Problem = err.Error()
		return c, nil
	}
	if c.Report.DamageCount > 0 {
		c.Problem = (&DamageError{First: c.Report.Damage[0], Count: c.Report.DamageCount}).Error()
	}
	err = d.readLog(ctx, p.WALDir)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	c.Log = d.Log
	if err != nil { // a restore refuses it
		c.LogError = err.Error()
		if c.Problem == "" {
			c.Problem = c.LogError
		}
	}
	return c, nil
}
