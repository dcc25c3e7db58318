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
	// LocalLockFree returns ErrLocked if LocalLock would. It changes nothing.
	LocalLockFree func() error
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
	dry       bool              // look and refuse as a run would, change nothing and wait for nothing
	ids       map[string]string // of members, by their labels
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
		var left []string
		for _, label := range r.out.Leftover {
			left = append(left, r.ids[label])
		}
		err = hint.With(err, "go on with: etcdkit defrag-all --members %s", strings.Join(left, ","))
	}
	if r.lock != nil {
		err = errors.Join(err, r.lock.Release(ctx))
	}
	return r.out, err
}

func (r *run) whole(ctx context.Context) error {
	facts, err := r.plan(ctx)
	work := r.opts.Compact || hasDefrag(r.out.Plan)
	if err == nil && work {
		facts, err = r.ready(ctx, facts)
	}
	if r.tools.Planned != nil && (err != nil || !r.opts.Compact) {
		r.tools.Planned(r.out.Plan)
	}
	if err != nil || !work || r.dry {
		return err
	}
	if err := r.takeLock(ctx, facts); err != nil {
		return err
	}
	if r.opts.Compact {
		if facts, err = r.compactFirst(ctx, facts); err != nil {
			return err
		}
	}
	return r.all(ctx, facts, r.out.Plan)
}

func hasDefrag(plan []Action) bool {
	return slices.ContainsFunc(plan, func(a Action) bool { return a.Action == actionDefrag })
}

// DefragDryRun returns what Defrag would do, and the refusal where Defrag would
// end before its first change: both are decided by the same code.
func DefragDryRun(ctx context.Context, tools Tools, endpoints []string, opts DefragOptions) (*Outcome, error) {
	r := newRun(tools, endpoints, opts)
	r.dry = true
	return r.out, r.whole(ctx)
}

func newRun(tools Tools, endpoints []string, opts DefragOptions) *run {
	out := &Outcome{Plan: []Action{}, Steps: []Step{}, Leftover: []string{}, Lock: "none"}
	return &run{tools: tools, endpoints: endpoints, opts: opts, out: out, ids: map[string]string{}}
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
		r.ids[m.Label()] = m.IDHex
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
	step := Step{Action: action, Member: member, MemberIDHex: r.ids[member], OK: err == nil, Detail: detail, TookSeconds: time.Since(start).Seconds()}
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
		next, leads := nextMember(pending, leaderID(facts.Members))
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

// nextMember takes the next member: the leader only when nobody else is left.
func nextMember(pending []Action, leader uint64) (next Action, leads bool) {
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
	member := facts.Members[slices.IndexFunc(facts.Members, func(m Member) bool { return m.ID == a.id })]
	client, err := operate(ctx, r.tools, member, facts.Cluster.ID)
	if err != nil {
		return "", err
	}
	defer func() { _ = client.Close() }()
	before := member.Status
	running, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound(before.SizeBytes))
	defer cancel()
	err = Attended(running, client, r.opts.StallTimeout, func(ctx context.Context) error {
		_, err := client.Defragment(ctx, member.Endpoint)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("%w (the server may still be working; see etcd_disk_defrag_inflight in its metrics)", err)
	}
	after, err := statusWithin(running, client, member.Endpoint)
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
