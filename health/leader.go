package health

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// ErrNoSuccessor means that no member can take leadership.
var ErrNoSuccessor = errors.New("no member can take leadership")

const (
	moveTimeout  = 15 * time.Second // of one try
	moveInterval = 100 * time.Millisecond
)

// Successors returns the members that may lead instead of the leader, the
// best first: voters that answer and serve, those that have applied most,
// then those that read fastest.
func Successors(facts Facts, leader uint64) []Member {
	var out []Member
	for _, m := range facts.Members {
		if m.ID != leader && m.Listed && !m.Learner && m.Status != nil && (m.Reads == nil || m.Reads.Error == "") {
			out = append(out, m)
		}
	}
	const near = 100 // entries that say nothing about who is better
	slices.SortStableFunc(out, func(a, b Member) int {
		if d := cmp.Compare(b.Status.Applied/near, a.Status.Applied/near); d != 0 {
			return d
		}
		if a.Reads == nil || b.Reads == nil {
			return 0
		}
		return cmp.Compare(a.Reads.MedianSeconds, b.Reads.MedianSeconds)
	})
	return out
}

// MoveLeader hands leadership from a member to the best of its successors, or
// the best of those that allowed admits, and waits until the new leader says
// so itself. It tries the next best when one does not take it, and returns
// the new leader's name.
func MoveLeader(ctx context.Context, tools Tools, facts Facts, from uint64, allowed func(Member) bool) (string, error) {
	i := slices.IndexFunc(facts.Members, func(m Member) bool { return m.ID == from })
	if i < 0 {
		return "", fmt.Errorf("%w: the leader is not known", ErrNoSuccessor)
	}
	old, err := tools.Operate(ctx, facts.Members[i].Endpoint)
	if err != nil {
		return "", err
	}
	defer func() { _ = old.Close() }()
	var failures []error
	for _, to := range Successors(facts, from) {
		if allowed != nil && !allowed(to) {
			continue
		}
		err := moveTo(ctx, tools, old, facts.Members[i].Endpoint, to)
		if err == nil {
			return to.Label(), nil
		}
		failures = append(failures, fmt.Errorf("%s: %w", to.Label(), err))
		if ctx.Err() != nil {
			break
		}
	}
	if len(failures) == 0 {
		return "", fmt.Errorf("%w: no other voter answers and serves", ErrNoSuccessor)
	}
	return "", fmt.Errorf("%w: %w", ErrNoSuccessor, errors.Join(failures...))
}

// moveTo asks for the move and believes what the members say afterwards: the
// request can fail though leadership moved, and it moves on its own when the
// old leader dies meanwhile.
func moveTo(ctx context.Context, tools Tools, old Operator, oldEndpoint string, to Member) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), moveTimeout)
	defer cancel()
	_, err := old.MoveLeader(ctx, to.ID)
	if err != nil && !errors.Is(err, rpctypes.ErrNotLeader) {
		// Another leader may have been elected all the same.
		if leader, statusErr := follows(ctx, tools, to); statusErr == nil && leader == to.ID {
			return nil
		}
		return err
	}
	for {
		leader, statusErr := follows(ctx, tools, to)
		if statusErr == nil && leader != 0 {
			if seen, err := statusWithin(ctx, old, oldEndpoint); err == nil && seen.Leader != seen.Header.MemberId {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, statusErr, fmt.Errorf("it did not take leadership within %s", moveTimeout))
		case <-time.After(moveInterval):
		}
	}
}

// follows asks a member whom it follows.
func follows(ctx context.Context, tools Tools, m Member) (uint64, error) {
	client, err := tools.Operate(ctx, m.Endpoint)
	if err != nil {
		return 0, err
	}
	defer func() { _ = client.Close() }()
	status, err := statusWithin(ctx, client, m.Endpoint)
	if err != nil {
		return 0, err
	}
	return status.Leader, nil
}
