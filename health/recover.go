package health

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/etcdkit/etcdkit/internal/etcd"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/output"
)

// ErrCorrupt is an armed CORRUPT alarm, which no procedure clears.
var ErrCorrupt = errors.New("alarm CORRUPT is armed")

// ErrNoRoom means that the quota is still used up after everything that can
// be freed was freed.
var ErrNoRoom = errors.New("there is still no room")

// RecoverOptions says how to recover from a used-up quota.
type RecoverOptions struct {
	Keep        int64   // revisions of history that stay
	DisarmBelow float64 // share of the quota that counts as room; 0.9
	Survey      bool    // show what fills the database
	DryRun      bool
	Defrag      DefragOptions // gates and timeouts; what is worth it is decided here
}

// Recovery is what was planned and done against a used-up quota.
type Recovery struct {
	Outcome
	Content *Content `json:"content,omitempty"`
}

const (
	actionSurvey = "survey"
	actionDisarm = "disarm"
	actionProve  = "prove"

	defaultDisarmBelow = 0.9
	// fullEnough is the share of the quota from which a member is defragmented:
	// compaction frees pages inside the file, and only this gives them back.
	fullEnough = 0.5
	// ProbePrefix is where the writes go that prove a recovery.
	ProbePrefix  = "etcdkit/probe/"
	probeSeconds = 60 // that the key of a killed client stays
)

// Recover takes a cluster out of the NOSPACE alarm: drop history, give the
// space back member by member, disarm where there is room again, prove it with
// a write. It is safe to run again after an interruption: each step looks at
// what is. A CORRUPT alarm is never disarmed, it ends the procedure.
func Recover(ctx context.Context, tools Tools, endpoints []string, opts RecoverOptions) (*Recovery, error) {
	opts.Defrag.NoSpace, opts.Defrag.Keep = true, opts.Keep
	if opts.DisarmBelow == 0 {
		opts.DisarmBelow = defaultDisarmBelow
	}
	r := newRun(tools, endpoints, opts.Defrag)
	r.dry = opts.DryRun
	rec := &recovery{run: r, opts: opts, out: &Recovery{}}
	err := rec.whole(ctx)
	if ctx.Err() != nil {
		err = hint.With(err, "run the same command again to go on: each step looks at what is")
	}
	if r.lock != nil {
		err = errors.Join(err, r.lock.Release(ctx))
	}
	rec.out.Outcome = *r.out
	return rec.out, err
}

type recovery struct {
	*run
	opts RecoverOptions
	out  *Recovery
}

func (r *recovery) whole(ctx context.Context) error {
	facts, err := r.look(ctx)
	if err != nil {
		return err
	}
	if err := corruption(facts); err != nil {
		return err
	}
	// Without quorum what the others know of alarms is not known.
	if err := voterWithQuorum(facts); err != nil {
		return err
	}
	armed := alarmed(facts, alarmNoSpace)
	if len(armed) == 0 {
		return nil
	}
	plan, err := r.describe(facts, armed)
	r.run.out.Plan = plan
	if r.tools.Planned != nil {
		r.tools.Planned(plan)
	}
	if err == nil {
		err = r.hopeless(facts, armed)
	}
	if err == nil {
		facts, err = r.ready(ctx, facts)
	}
	if err != nil {
		return err
	}
	if r.opts.Survey {
		if err := r.survey(ctx, facts, armed); err != nil {
			return err
		}
	}
	if r.dry {
		return nil
	}
	return r.act(ctx, facts, armed)
}

// hopeless refuses an alarm that the plan cannot clear, before it drops any
// history.
func (r *recovery) hopeless(facts Facts, armed []uint64) error {
	for _, m := range facts.Members {
		switch {
		case !m.Listed || !slices.Contains(armed, m.ID) || r.room(m):
		case m.Status == nil || m.Status.QuotaBytes == 0:
			return hint.With(fmt.Errorf("%w: %s has alarm NOSPACE armed, and its size and quota cannot be seen, so the alarm could not be disarmed", ErrUnknown, m.Named()),
				"bring the member back, or allow its metrics to be read with --metrics-urls (etcd 3.5 tells its quota there)")
		case m.Learner:
			return hint.With(fmt.Errorf("%w: alarm NOSPACE is armed by the learner %s, whose own quota is used up (%s of %s); etcd defragments no learner, so no step of this plan would help",
				ErrRefused, m.Named(), output.Bytes(m.Status.SizeBytes), output.Bytes(m.Status.QuotaBytes)),
				"restart the learner with a larger --quota-backend-bytes, or remove it (etcdkit member remove %s), then run this again", m.IDHex)
		}
	}
	return nil
}

// act is the procedure itself.
func (r *recovery) act(ctx context.Context, facts Facts, armed []uint64) error {
	if err := r.takeLock(ctx, facts); err != nil {
		return err
	}
	if err := r.do(actionCompact, "", func() (string, error) { return r.compact(ctx, facts) }); err != nil {
		return err
	}
	if err := r.mayGoOn(ctx); err != nil {
		return err
	}
	plan, err := PlanDefrag(facts, r.defragOptions(facts, armed))
	if err != nil {
		return err
	}
	if err := r.idle(ctx, plan); err != nil {
		return err
	}
	if err := r.all(ctx, facts, plan); err != nil {
		return err
	}
	if facts, err = r.disarmAll(ctx); err != nil {
		return err
	}
	return r.do(actionProve, "", func() (string, error) { return r.prove(ctx, facts) })
}

// disarmAll disarms until no alarm is left. Every member raises its own, and
// one that lagged may have done so only now.
func (r *recovery) disarmAll(ctx context.Context) (Facts, error) {
	const rounds = 5
	var armed []uint64
	for range rounds {
		facts, err := r.armed(ctx, armed)
		if err != nil {
			return facts, err
		}
		armed = alarmed(facts, alarmNoSpace)
		if len(armed) == 0 {
			return facts, nil
		}
		for _, id := range armed {
			if err := r.mayGoOn(ctx); err != nil {
				return facts, err
			}
			name := names(facts, []uint64{id})[0]
			if err := r.do(actionDisarm, name, func() (string, error) { return r.disarm(ctx, facts, id) }); err != nil {
				return facts, err
			}
		}
	}
	return Facts{}, fmt.Errorf("%w: the alarm was armed again %d times: something writes faster than this frees", ErrNoRoom, rounds)
}

// armed looks at the alarms, and for a while again where one of those that were
// just disarmed is among them: a member may not have heard of it yet.
func (r *recovery) armed(ctx context.Context, disarmed []uint64) (Facts, error) {
	deadline := time.Now().Add(settleTime)
	for {
		facts, err := r.look(ctx)
		stale := slices.ContainsFunc(alarmed(facts, alarmNoSpace), func(id uint64) bool { return slices.Contains(disarmed, id) })
		if err != nil || !stale || time.Now().After(deadline) {
			return facts, err
		}
		if err := r.wait(ctx, gateInterval/5); err != nil {
			return facts, err
		}
	}
}

// defragOptions chooses the members that are full. In-use figures are stale
// here, for a server counts freed pages with its next write, and writes are
// what the alarm forbids: so it is the quota that decides.
func (r *recovery) defragOptions(facts Facts, armed []uint64) DefragOptions {
	opts := r.run.opts
	for _, m := range facts.Members {
		if m.Status != nil && !m.Learner && (m.Status.QuotaUsed() >= fullEnough || slices.Contains(armed, m.ID) && !r.room(m)) {
			opts.Members = append(opts.Members, m.IDHex)
		}
	}
	if len(opts.Members) == 0 { // nobody is worth it: no names would mean all
		opts.MinFragmentation, opts.MinQuotaUsed = 1, 1
	}
	return opts
}

// room reports whether the member's alarm may be disarmed.
func (r *recovery) room(m Member) bool {
	return m.Status != nil && m.Status.QuotaBytes != 0 && m.Status.QuotaUsed() < r.opts.DisarmBelow
}

// describe is the plan with the reason of each step, and why it would be
// refused.
func (r *recovery) describe(facts Facts, armed []uint64) ([]Action, error) {
	plan := []Action{}
	if r.opts.Survey {
		plan = append(plan, Action{Action: actionSurvey, Detail: "read all live keys at one revision, to show what fills the database"})
	}
	c := compaction(facts, r.opts.Keep)
	if newestRevision(facts) > r.opts.Keep {
		c.Detail += "; without it a defragmentation finds nothing to give back"
	}
	plan = append(plan, c)
	defrag, err := PlanDefrag(facts, r.defragOptions(facts, armed))
	for i, a := range defrag {
		if a.Action == actionDefrag {
			defrag[i].Detail += "; compaction frees pages inside the file, but the quota counts the file"
			defrag[i].ReclaimBytes = 0 // not known before the compaction
		}
	}
	plan = append(plan, defrag...)
	for _, id := range armed {
		plan = append(plan, Action{Action: actionDisarm, Member: names(facts, []uint64{id})[0], MemberIDHex: output.ID(id), Detail: fmt.Sprintf(
			"NOSPACE only, and only when less than %.0f%% of the quota is used: etcd never clears it by itself", 100*r.opts.DisarmBelow)})
	}
	return append(plan, Action{Action: actionProve, Detail: "write a key under " + ProbePrefix + " and remove it again"}), err
}

// through runs short requests through a voter, which do no harm when they are
// repeated: a voter that has stopped answering since it was looked at leaves
// them to the next one, each with a deadline of its own. They outlive a signal,
// so that nothing is left half done.
func (r *run) through(ctx context.Context, facts Facts, fn func(context.Context, Operator) error) error {
	return firstVoter(facts, func(m Member) (silent bool, err error) { return r.throughOne(ctx, facts, m, fn) })
}

// firstVoter tries the voters that are alive in turn, until one is not silent.
func firstVoter(facts Facts, try func(m Member) (silent bool, err error)) error {
	if _, err := voter(facts); err != nil {
		return err
	}
	var failures []error
	for _, m := range facts.Members {
		if !m.speaks() {
			continue
		}
		silent, err := try(m)
		if err == nil || !silent {
			return err
		}
		failures = append(failures, fmt.Errorf("%s: %w", m.Label(), err))
	}
	return errors.Join(failures...)
}

// throughOne runs the requests through one voter, and reports whether that did
// not answer.
func (r *run) throughOne(ctx context.Context, facts Facts, m Member, fn func(context.Context, Operator) error) (silent bool, err error) {
	client, err := operate(ctx, r.tools, m, facts.Cluster.ID)
	if err != nil {
		return true, err
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*defaultTimeout)
	defer cancel()
	err = fn(ctx, client)
	return ctx.Err() != nil || unavailable(err), err
}

// unavailable reports whether err says that the member is not there, or that it
// has no leader to ask.
func unavailable(err error) bool {
	if told, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		return told.Code() == codes.Unavailable
	}
	_, unconnected := errors.AsType[*etcd.NoConnectionError](err)
	return unconnected || status.Code(err) == codes.Unavailable
}

// anyOf opens a client at a voter: the first that answers now.
func (r *run) anyOf(ctx context.Context, facts Facts) (client Operator, err error) {
	err = firstVoter(facts, func(m Member) (silent bool, err error) {
		client, err = operate(ctx, r.tools, m, facts.Cluster.ID)
		return true, err
	})
	return client, err
}

// voter returns a member that can be asked for anything: one that is alive.
func voter(facts Facts) (Member, error) {
	m, ok := facts.Speaker(0)
	if !ok {
		return m, fmt.Errorf("%w: no voter is alive", ErrUnknown)
	}
	return m, nil
}

// voterWithQuorum refuses where no quorum is there to agree on anything.
func voterWithQuorum(facts Facts) error {
	voting := VotingOf(facts.Members)
	switch {
	case voting.Serves() && leaderID(facts.Members) != 0:
		return nil
	case readsServed(facts):
		return hint.With(fmt.Errorf("%w: not enough voters can be seen from here (%s)", ErrRefused, voting), "%s", elsewhereNext)
	}
	return hint.With(fmt.Errorf("%w: the cluster has no quorum (%s)", ErrRefused, voting), "%s", quorumNext)
}

// alarmed returns the members whose alarm of the kind any member knows of.
func alarmed(facts Facts, kind string) []uint64 {
	var ids []uint64
	for _, m := range facts.Members {
		if m.Status == nil {
			continue
		}
		for _, a := range m.Status.Alarms {
			if a.Kind == kind && !slices.Contains(ids, a.MemberID) {
				ids = append(ids, a.MemberID)
			}
		}
	}
	return ids
}

func names(facts Facts, ids []uint64) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = output.ID(id)
		for _, m := range facts.Members {
			if m.ID == id {
				out[i] = m.Label()
			}
		}
	}
	return out
}
