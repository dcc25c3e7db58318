package health

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// ErrNoSuccessor means that no member can take leadership.
var ErrNoSuccessor = errors.New("no member can take leadership")

const (
	moveTimeout  = 15 * time.Second // of one try
	moveInterval = 100 * time.Millisecond
)

// Successors returns the members that may lead instead of the leader, the
// best first: voters that are alive, those that have applied most,
// then those that read fastest.
func Successors(facts Facts, leader uint64) []Member {
	var out []Member
	for _, m := range facts.Members {
		if m.ID != leader && m.Listed && !m.Learner && m.Life().Alive {
			out = append(out, m)
		}
	}
	const near = 100 // entries that say nothing about who is better
	slices.SortStableFunc(out, func(a, b Member) int {
		if d := cmp.Compare(b.Status.Applied/near, a.Status.Applied/near); d != 0 {
			return d
		}
		return cmp.Compare(a.Reads.MedianSeconds, b.Reads.MedianSeconds)
	})
	return out
}

// MoveToAny hands leadership to the best of the other members, and returns the
// old leader and the new one.
func MoveToAny(ctx context.Context, tools Tools, endpoints []string) (from, to Member, err error) {
	r := newRun(tools, endpoints, DefragOptions{})
	facts, err := r.look(ctx)
	if err != nil {
		return from, to, err
	}
	if err := voterWithQuorum(facts); err != nil {
		return from, to, err
	}
	i := slices.IndexFunc(facts.Members, func(m Member) bool { return m.ID == leaderID(facts.Members) })
	if i < 0 {
		return from, to, fmt.Errorf("%w: the leader is not known", ErrNoSuccessor)
	}
	from = facts.Members[i]
	to, err = MoveLeader(ctx, tools, facts, from.ID)
	return from, to, err
}

// MoveLeader hands leadership from a member to the best of its successors, and
// waits until the old leader itself follows another one that serves. It tries
// the next best when one does not take it. Who leads then is returned.
func MoveLeader(ctx context.Context, tools Tools, facts Facts, from uint64) (Member, error) {
	i := slices.IndexFunc(facts.Members, func(m Member) bool { return m.ID == from })
	if i < 0 {
		return Member{}, fmt.Errorf("%w: the leader is not known", ErrNoSuccessor)
	}
	old, err := operate(ctx, tools, facts.Members[i], facts.Cluster.ID)
	if err != nil {
		return Member{}, err
	}
	defer func() { _ = old.Close() }()
	var failures []error
	for _, to := range Successors(facts, from) {
		leader, err := moveTo(ctx, old, facts.Members[i].Endpoint, to)
		if err == nil {
			j := slices.IndexFunc(facts.Members, func(m Member) bool { return m.ID == leader })
			return facts.Members[max(j, 0)], nil
		}
		failures = append(failures, fmt.Errorf("%s: %w", to.Label(), err))
		if ctx.Err() != nil {
			break
		}
	}
	if len(failures) == 0 {
		return Member{}, fmt.Errorf("%w: no other voter answers and serves", ErrNoSuccessor)
	}
	return Member{}, fmt.Errorf("%w: %w", ErrNoSuccessor, errors.Join(failures...))
}

// moveTo asks for the move and believes what the old leader says afterwards:
// the request can fail though leadership moved, and an election may make
// another the leader. A signal does not end it, for leadership must not be in
// the air when we leave.
func moveTo(ctx context.Context, old Operator, endpoint string, to Member) (leader uint64, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), moveTimeout)
	defer cancel()
	_, moveErr := old.MoveLeader(ctx, to.ID)
	for {
		seen, err := statusWithin(ctx, old, endpoint)
		switch {
		case err == nil && seen.Leader != 0 && seen.Leader != seen.Header.MemberId:
			if err = served(ctx, old); err == nil {
				return seen.Leader, nil
			}
		case err == nil && seen.Leader != 0 && moveErr != nil:
			return 0, moveErr // it still leads
		}
		select {
		case <-ctx.Done():
			return 0, errors.Join(moveErr, err, fmt.Errorf("no other leader that serves within %s", moveTimeout))
		case <-time.After(moveInterval):
		}
	}
}

// served reads through the member what its leader has to confirm. A new leader
// can do so once it has committed something, and the member answers once it
// has applied that: all that it was asked for before has an answer then, but
// for what etcd dropped at the change.
func served(ctx context.Context, client Client) error {
	_, err := within(ctx, func(ctx context.Context) (*clientv3.GetResponse, error) { return client.Get(ctx, probeKey) })
	if err != nil && refusedAfterRead(err) {
		return nil
	}
	return err
}
