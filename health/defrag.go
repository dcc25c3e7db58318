package health

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/output"
)

// Operator is the part of *clientv3.Client that maintenance uses on one
// member.
type Operator interface {
	Client
	Membership
	Defragment(ctx context.Context, endpoint string) (*clientv3.DefragmentResponse, error)
	MoveLeader(ctx context.Context, id uint64) (*clientv3.MoveLeaderResponse, error)
	Compact(ctx context.Context, rev int64, opts ...clientv3.CompactOption) (*clientv3.CompactResponse, error)
	Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error)
	Revoke(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error)
	AlarmDisarm(ctx context.Context, m *clientv3.AlarmMember) (*clientv3.AlarmResponse, error)
	Put(ctx context.Context, key, value string, opts ...clientv3.OpOption) (*clientv3.PutResponse, error)
	Delete(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.DeleteResponse, error)
}

// Tools are the ways to change a cluster.
type Tools struct {
	Doors
	// Operate opens a client pinned to one endpoint.
	Operate func(ctx context.Context, endpoint string) (Operator, error)
	// Lock keeps a second maintenance away. ErrNoLease makes LocalLock stand in.
	Lock func(ctx context.Context, ttl time.Duration) (Lock, error)
	// LocalLock keeps a second maintenance from this host away.
	LocalLock func() (Lock, error)
	// Planned, if set, is told the plan before anything is done.
	Planned func(plan []Action)
	// Starting and Done, if set, are told of each step as it happens.
	Starting func(action, member string)
	Done     func(step Step)
}

// Outcome is what was planned and what was done. Leftover says what was
// planned and not reached.
type Outcome struct {
	Plan     []Action `json:"plan"`
	Steps    []Step   `json:"steps"`
	Leftover []string `json:"leftover"`
	Lock     string   `json:"lock"` // etcd, local, none
}

// run is a maintenance in progress.
type run struct {
	tools     Tools
	endpoints []string
	opts      DefragOptions
	out       *Outcome
	lock      Lock
}

// Defrag defragments the members that PlanDefrag chooses, one at a time, the
// leader last and after it handed leadership on. Between two members the
// cluster must be well. A cancelled ctx stops before the next step: one that
// the server is already at is waited for. The outcome is whole whatever the
// error.
func Defrag(ctx context.Context, tools Tools, endpoints []string, opts DefragOptions) (*Outcome, error) {
	r := newRun(tools, endpoints, opts)
	err := r.whole(ctx)
	if ctx.Err() != nil && len(r.out.Leftover) > 0 {
		err = hint.With(err, "go on with: etcdkit defrag-all --members %s", strings.Join(r.out.Leftover, ","))
	}
	if r.lock != nil {
		err = errors.Join(err, r.lock.Release(ctx))
	}
	return r.out, err
}

func (r *run) whole(ctx context.Context) error {
	if r.opts.Compact {
		if err := r.compactFirst(ctx); err != nil {
			return err
		}
	}
	facts, err := r.plan(ctx)
	if r.tools.Planned != nil {
		r.tools.Planned(r.out.Plan)
	}
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(r.out.Plan, func(a Action) bool { return a.Action == actionDefrag }) {
		return nil
	}
	if err := r.takeLock(ctx, facts); err != nil {
		return err
	}
	if err := r.idle(ctx, r.out.Plan); err != nil {
		return err
	}
	return r.all(ctx, facts, r.out.Plan)
}

// DefragDryRun returns what Defrag would do, with the same refusals.
func DefragDryRun(ctx context.Context, tools Tools, endpoints []string, opts DefragOptions) (*Outcome, error) {
	r := newRun(tools, endpoints, opts)
	_, err := r.plan(ctx)
	return r.out, err
}

func newRun(tools Tools, endpoints []string, opts DefragOptions) *run {
	out := &Outcome{Plan: []Action{}, Steps: []Step{}, Leftover: []string{}, Lock: "none"}
	return &run{tools: tools, endpoints: endpoints, opts: opts, out: out}
}

func (r *run) plan(ctx context.Context) (Facts, error) {
	facts, err := r.look(ctx)
	if err != nil {
		return facts, err
	}
	plan, err := PlanDefrag(facts, r.opts)
	if r.opts.Compact {
		plan = slices.Insert(plan, 0, compaction(facts, r.opts.Keep))
	}
	r.out.Plan = append([]Action{}, plan...)
	return facts, err
}

// look gathers what the gates need: no metrics, no certificates.
func (r *run) look(ctx context.Context) (Facts, error) {
	doors := r.tools.Doors
	doors.Handshake = nil
	facts, err := Gather(ctx, doors, r.endpoints, Options{Reads: 1})
	if err == nil && !slices.ContainsFunc(facts.Members, func(m Member) bool { return m.Status != nil }) {
		err = fmt.Errorf("%w: no endpoint answered", ErrUnknown)
		if len(facts.Members) > 0 {
			err = hint.With(fmt.Errorf("%w: %s", err, facts.Members[0].Error), "%s", facts.Members[0].next())
		}
	}
	r.know(facts)
	return facts, err
}

// know adds the members' endpoints to those asked: the ones given may be of
// members that are going to be down, or removed.
func (r *run) know(facts Facts) {
	for _, m := range facts.Members {
		if m.Listed && m.Reachable && !slices.ContainsFunc(r.endpoints, func(ep string) bool { return bare(ep) == bare(m.Endpoint) }) {
			r.endpoints = append(slices.Clip(r.endpoints), m.Endpoint)
		}
	}
}

// do runs one step, reports it and remembers it.
func (r *run) do(action, member string, fn func() (detail string, err error)) error {
	if r.tools.Starting != nil {
		r.tools.Starting(action, member)
	}
	start := time.Now()
	detail, err := fn()
	step := Step{Action: action, Member: member, OK: err == nil, Detail: detail, TookSeconds: time.Since(start).Seconds()}
	if err != nil {
		step.Detail = err.Error()
		err = fmt.Errorf("%s %s: %w", action, member, err)
	}
	r.out.Steps = append(r.out.Steps, step)
	if r.tools.Done != nil {
		r.tools.Done(step)
	}
	return err
}

// all works through the plan. Who leads is looked at before each member, for
// an election may have changed it since the plan was made.
func (r *run) all(ctx context.Context, facts Facts, plan []Action) error {
	var pending []Action
	for _, a := range plan {
		if a.Action == actionDefrag {
			pending = append(pending, a)
		}
	}
	defer func() {
		for _, a := range pending {
			r.out.Leftover = append(r.out.Leftover, a.Member)
		}
	}()
	var failures []error
	for first := true; len(pending) > 0; first = false {
		facts, err := r.gate(ctx, facts, first)
		if err != nil {
			return errors.Join(append(failures, err)...)
		}
		next, leads := choose(pending, leaderID(facts.Members))
		err = r.one(ctx, facts, next, leads)
		if err == nil || r.opts.ContinueOnError {
			pending = slices.DeleteFunc(pending, func(a Action) bool { return a.id == next.id })
		}
		if err != nil {
			failures = append(failures, err)
		}
		if err != nil && !r.opts.ContinueOnError {
			break
		}
	}
	if len(pending) == 0 && len(failures) == 0 {
		_, err := r.gate(ctx, facts, true) // the last member must be well again, too
		return err
	}
	return errors.Join(failures...)
}

// choose takes the next member: the leader only when nobody else is left.
func choose(pending []Action, leader uint64) (next Action, leads bool) {
	for _, a := range pending {
		if a.id != leader {
			return a, false
		}
	}
	return pending[0], true
}

// one defragments one member, after taking leadership from it.
func (r *run) one(ctx context.Context, facts Facts, a Action, leads bool) error {
	if err := r.free(ctx, a); err != nil {
		return err
	}
	if leads && VotingOf(facts.Members).Voters > 1 {
		err := r.do(actionMove, a.Member, func() (string, error) {
			to, err := MoveLeader(ctx, r.tools, facts, a.id)
			return "to " + to.Label(), err
		})
		if err != nil {
			return err
		}
	}
	return r.do(actionDefrag, a.Member, func() (string, error) { return r.defragment(ctx, facts, a) })
}

// defragment runs one defragmentation to its end, even when ctx ends: the
// server goes on anyway, and leaving now would leave the next step to chance.
func (r *run) defragment(ctx context.Context, facts Facts, a Action) (string, error) {
	client, err := r.tools.Operate(ctx, a.endpoint)
	if err != nil {
		return "", err
	}
	defer func() { _ = client.Close() }()
	before := facts.Members[slices.IndexFunc(facts.Members, func(m Member) bool { return m.ID == a.id })].Status
	running, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound(before.SizeBytes))
	defer cancel()
	err = Attended(running, client, r.opts.StallTimeout, func(ctx context.Context) error {
		_, err := client.Defragment(ctx, a.endpoint)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("%w (the server may still be working; see etcd_disk_defrag_inflight in its metrics)", err)
	}
	after, err := statusWithin(running, client, a.endpoint)
	if err != nil {
		return "", fmt.Errorf("look at the result: %w", err)
	}
	return output.SizeChange(before.SizeBytes, after.DbSize), nil
}

func statusWithin(ctx context.Context, client Client, endpoint string) (*clientv3.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	return client.Status(ctx, endpoint)
}

// bound is the longest that a defragmentation may take at all: a hundred
// times slower than the forecast, and never less than ten minutes.
func bound(size int64) time.Duration { return 10*time.Minute + 100*forecast(size) }
