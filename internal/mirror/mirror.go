// Package mirror copies keys from one cluster to another and follows their
// changes, from where an earlier run has stopped if there is a checkpoint.
package mirror

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

var (
	// ErrCheckpoint says that a checkpoint is another mirror's: of other
	// clusters or prefixes.
	ErrCheckpoint = errors.New("the checkpoint belongs to another mirror")
	// ErrWentBack says that the source has lost revisions that were copied
	// already: it was restored from a backup, or is another cluster.
	ErrWentBack = errors.New("the source's revision went backwards")
	// ErrLost says that a cluster has not answered for too long.
	ErrLost = errors.New("no answer for too long")
)

// Mirror is one job.
type Mirror struct {
	From, To *clientv3.Client

	Prefix     string // of the keys to copy
	DestPrefix string // what Prefix becomes at the destination
	// Rev makes the mirror follow from this revision on, without copying what
	// there was before. 0 copies.
	Rev int64
	// Checkpoint is the file that remembers how far the mirror has come, ""
	// for none.
	Checkpoint string
	// MaxTxnOps bounds the changes made in one transaction. A larger
	// transaction of the source is split, and is not atomic then.
	MaxTxnOps int
	// DeleteExtra deletes keys under DestPrefix that the source does not have,
	// once ConfirmDelete has agreed to their number.
	DeleteExtra   bool
	ConfirmDelete func(count int) error

	Timeout time.Duration // bounds each request
	GiveUp  time.Duration // after so long without an answer, 0 means never
	// Note tells the user what happens.
	Note func(format string, args ...any)

	check   checkpoint   // as it stands
	saved   time.Time    // when the file was written last
	applied int64        // keys written or deleted
	seen    atomic.Int64 // check.Revision, for the watchman
}

// Prepare looks at both clusters and at the checkpoint. It reports whether there
// is one, and refuses one that does not fit.
func (m *Mirror) Prepare(ctx context.Context) (resumes bool, err error) {
	source, rev, err := m.identity(ctx, m.From)
	if err != nil {
		return false, fmt.Errorf("source: %w", err)
	}
	dest, _, err := m.identity(ctx, m.To)
	if err != nil {
		return false, &DestinationError{err}
	}
	m.check = checkpoint{Schema: 1, Source: hexID(source), Destination: hexID(dest), Prefix: m.Prefix, DestPrefix: m.DestPrefix}
	if m.Checkpoint == "" {
		return false, nil
	}
	before, err := readCheckpoint(m.Checkpoint)
	if err != nil || before == nil {
		return false, err
	}
	if err := before.fits(m.check); err != nil {
		return false, fmt.Errorf("%s: %w", m.Checkpoint, err)
	}
	if rev < before.Revision {
		return false, fmt.Errorf("%w: it is at %d, and %s is at %d", ErrWentBack, rev, m.Checkpoint, before.Revision)
	}
	m.check.Revision = before.Revision
	return true, nil
}

// DestinationError is a failure to reach the destination, not the source.
type DestinationError struct{ Err error }

func (e *DestinationError) Error() string { return "destination: " + e.Err.Error() }
func (e *DestinationError) Unwrap() error { return e.Err }

// identity returns a cluster's id and revision.
func (m *Mirror) identity(ctx context.Context, client *clientv3.Client) (id uint64, rev int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, m.Timeout)
	defer cancel()
	resp, err := client.Get(ctx, m.probeKey(client), clientv3.WithCountOnly())
	if err != nil {
		return 0, 0, err
	}
	return resp.Header.ClusterId, resp.Header.Revision, nil
}

// probeKey is a key that may be read by whoever may mirror.
func (m *Mirror) probeKey(client *clientv3.Client) string {
	prefix := m.Prefix
	if client == m.To {
		prefix = m.DestPrefix
	}
	if prefix == "" {
		return "\x00"
	}
	return prefix
}

// Run mirrors until ctx ends or something is wrong; Prepare comes first. The
// error is never nil.
func (m *Mirror) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go m.guardLiveness(ctx, cancel)
	err := m.run(ctx)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return errors.Join(err, m.save(true))
}

func (m *Mirror) run(ctx context.Context) error {
	switch {
	case m.check.Revision > 0:
		m.Note("going on after revision %d", m.check.Revision)
	case m.Rev > 0:
		m.check.Revision = m.Rev - 1
	default:
		if err := m.compare(ctx); err != nil {
			return err
		}
	}
	for {
		err := m.follow(ctx)
		if !errors.Is(err, errCompacted) {
			return err
		}
		m.Note("revision %d was compacted at the source: comparing all keys", m.check.Revision+1)
		if err := m.compare(ctx); err != nil {
			return err
		}
	}
}

// guardLiveness asks the source now and then, since a watch does not tell when
// its cluster has gone, and ends the mirror when it is another cluster or an
// older one.
func (m *Mirror) guardLiveness(ctx context.Context, cancel context.CancelCauseFunc) {
	const pause = 5 * time.Second
	answered := time.Now()
	silent := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		id, rev, err := m.identity(ctx, m.From)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && hexID(id) != m.check.Source:
			cancel(fmt.Errorf("%w: the source is cluster %s now", ErrCheckpoint, hexID(id)))
			return
		case err == nil && rev < m.seen.Load():
			cancel(fmt.Errorf("%w: it is at %d, and %d was copied", ErrWentBack, rev, m.seen.Load()))
			return
		case err == nil:
			if silent {
				m.Note("the source answers again")
			}
			answered, silent = time.Now(), false
		case m.GiveUp > 0 && time.Since(answered) > m.GiveUp:
			cancel(fmt.Errorf("source: %w (%s): %w", ErrLost, m.GiveUp, err))
			return
		case !silent:
			silent = true
			m.Note("the source does not answer, still trying: %v", err)
		}
	}
}
