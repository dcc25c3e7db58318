package snapshot

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/etcdkit/etcdkit/internal/mvccdb"
)

// Candidate is a data directory that a cluster could be recovered from.
type Candidate struct {
	DataDir  string
	Problem  string // why it cannot be used, "" if it can
	Locked   bool   // a running etcd holds it
	Report   *mvccdb.Report
	Log      *LogState // nil where it cannot be read
	LogError string
}

// Usable reports whether the directory can be recovered from at all.
func (c *Candidate) Usable() bool { return c.Problem == "" }

// LastEntry returns term and index of the newest entry that the directory
// holds, applied or in the log.
func (c *Candidate) LastEntry() (term, index uint64) {
	if c.Report == nil {
		return 0, 0
	}
	term, index = c.Report.State.Term, c.Report.State.ConsistentIndex
	if c.Log != nil && c.Log.Last >= index {
		term, index = c.Log.LastTerm, c.Log.Last
	}
	return term, index
}

// Compare looks at the data directories of the members of one cluster and
// returns them in the order given, with the place of the best one to recover
// from: undamaged, and with the newest entry as raft orders them, by term and
// then by index. best is -1 where none can be used.
func Compare(ctx context.Context, dirs []string, wait time.Duration) (all []*Candidate, best int, err error) {
	best = -1
	for i, dir := range dirs {
		c, err := candidateOf(ctx, dir, wait)
		if err != nil {
			return nil, -1, err
		}
		all = append(all, c)
		if c.Usable() && (best < 0 || newer(c, all[best])) {
			best = i
		}
	}
	return all, best, nil
}

// newer reports whether a has more than b.
func newer(a, b *Candidate) bool {
	termA, indexA := a.LastEntry()
	termB, indexB := b.LastEntry()
	return cmp.Or(cmp.Compare(termA, termB), cmp.Compare(indexA, indexB), cmp.Compare(a.Report.Revision, b.Report.Revision)) > 0
}

// candidateOf reads one data directory. Only the end of ctx is an error: all
// else is a finding.
func candidateOf(ctx context.Context, dir string, wait time.Duration) (c *Candidate, err error) {
	c = &Candidate{DataDir: dir}
	f, err := OpenFile(ctx, dir, wait)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		c.Problem, c.Locked = err.Error(), errors.Is(err, ErrLocked)
		return c, nil
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if c.Report, err = f.Check(ctx, mvccdb.CheckOptions{SkipTrailer: true}); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		c.Problem = err.Error()
		return c, nil
	}
	if c.Report.DamageCount > 0 {
		c.Problem = (&DamageError{First: c.Report.Damage[0], Count: c.Report.DamageCount}).Error()
	}
	log, err := f.LogState(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		c.LogError = err.Error()
	default:
		c.Log, c.LogError = log, log.Damage
	}
	return c, nil
}
