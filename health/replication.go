package health

import (
	"context"
	"fmt"
	"slices"
	"time"
)

const replicationInterval = 50 * time.Millisecond

// replicate looks whether the learners receive what is committed. A learner
// that is cut off keeps its leader and, while nothing is written, lags behind
// nobody. So something is committed first that changes nothing: a list of the
// alarms, which goes through the log.
func replicate(ctx context.Context, probes []*probe, opts Options) {
	learners := slices.DeleteFunc(slices.Clone(probes), func(p *probe) bool { return !p.Listed || !p.Learner || p.Status == nil })
	if len(learners) == 0 {
		return
	}
	committed, err := commitIndex(ctx, probes, opts)
	each(learners, func(p *probe) {
		p.Replication = &Replication{Committed: committed, Applied: p.Status.Applied}
		if err != nil {
			p.Replication.Error = err.Error()
			return
		}
		p.follow(ctx, opts)
	})
}

// commitIndex commits an entry and returns the index of the newest one that is
// committed since, as a voter tells it that applied that entry.
func commitIndex(ctx context.Context, probes []*probe, opts Options) (uint64, error) {
	i := slices.IndexFunc(probes, func(p *probe) bool { return p.Listed && !p.Learner && p.Life().Alive })
	if i < 0 {
		return 0, fmt.Errorf("no voter is alive that could commit an entry")
	}
	ctx, cancel := context.WithTimeout(ctx, opts.timeout())
	defer cancel()
	if _, err := probes[i].client.AlarmList(ctx); err != nil && !refused(err) {
		return 0, fmt.Errorf("commit an entry: %w", err)
	}
	status, err := probes[i].client.Status(ctx, probes[i].Endpoint)
	if err != nil {
		return 0, fmt.Errorf("read the commit index: %w", err)
	}
	return status.RaftIndex, nil
}

// follow waits until the learner has applied what was committed, or until the
// deadline.
func (p *probe) follow(ctx context.Context, opts Options) {
	ctx, cancel := context.WithTimeout(ctx, opts.timeout())
	defer cancel()
	for {
		err := p.status(ctx)
		if err != nil {
			p.Replication.Error = err.Error()
			return
		}
		p.Replication.Applied = p.Status.Applied
		if p.Replication.Applied >= p.Replication.Committed {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(replicationInterval):
		}
	}
}
