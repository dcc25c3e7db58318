package health

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

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
	if err := knownMembers(facts.Members, r.opts.Defrag.MustExist); err != nil {
		return err
	}
	r.run.out.Plan = r.describe(facts, armed)
	if r.tools.Planned != nil {
		r.tools.Planned(r.run.out.Plan)
	}
	if r.opts.Survey {
		if err := r.survey(ctx, facts); err != nil {
			return err
		}
	}
	if r.opts.DryRun {
		return nil
	}
	return r.act(ctx, facts, armed)
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

// describe is the plan with the reason of each step.
func (r *recovery) describe(facts Facts, armed []uint64) []Action {
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
	if err != nil {
		defrag = append(defrag, Action{Action: actionSkip, Detail: err.Error()})
	}
	for i, a := range defrag {
		if a.Action == actionDefrag {
			defrag[i].Detail += "; compaction frees pages inside the file, but the quota counts the file"
			defrag[i].ReclaimBytes = 0 // not known before the compaction
		}
	}
	plan = append(plan, defrag...)
	for _, name := range names(facts, armed) {
		plan = append(plan, Action{Action: actionDisarm, Member: name, Detail: fmt.Sprintf(
			"NOSPACE only, and only when less than %.0f%% of the quota is used: etcd never clears it by itself", 100*r.opts.DisarmBelow)})
	}
	return append(plan, Action{Action: actionProve, Detail: "write a key under " + ProbePrefix + " and remove it again"})
}

func (r *recovery) survey(ctx context.Context, facts Facts) error {
	m, err := voter(facts)
	if err != nil {
		return err
	}
	return r.do(actionSurvey, "", func() (string, error) {
		client, err := r.tools.Dial(ctx, m.Endpoint)
		if err != nil {
			return "", err
		}
		defer func() { _ = client.Close() }()
		c, err := Survey(ctx, client)
		if err != nil {
			return "", err
		}
		for _, m := range facts.Members {
			if m.Status != nil {
				c.InUseBytes = max(c.InUseBytes, m.Status.InUseBytes)
			}
		}
		c.RestBytes = max(0, c.InUseBytes-c.LiveBytes)
		r.out.Content = &c
		return fmt.Sprintf("%d live keys hold %s, history and overhead %s", c.Keys, output.Bytes(c.LiveBytes), output.Bytes(c.RestBytes)), nil
	})
}

// disarm clears the member's NOSPACE alarm where there is room again.
func (r *recovery) disarm(ctx context.Context, facts Facts, id uint64) (string, error) {
	i := slices.IndexFunc(facts.Members, func(m Member) bool { return m.ID == id })
	// A member that was removed cannot fill up any more, its alarm stays behind.
	if i >= 0 && facts.Members[i].Listed && !r.room(facts.Members[i]) {
		s := facts.Members[i].Status
		if s == nil || s.QuotaBytes == 0 {
			return "", fmt.Errorf("%w: its size and quota cannot be seen", ErrUnknown)
		}
		return "", r.noRoom(*s)
	}
	err := r.through(ctx, facts, func(ctx context.Context, client Operator) error {
		// The kind is named: the empty request would clear every alarm, CORRUPT too.
		_, err := client.AlarmDisarm(ctx, &clientv3.AlarmMember{MemberID: id, Alarm: pb.AlarmType_NOSPACE})
		return err
	})
	if err != nil {
		return "", err
	}
	if i < 0 || facts.Members[i].Status == nil {
		return "the member is gone, its alarm was left behind", nil
	}
	s := facts.Members[i].Status
	return fmt.Sprintf("%s of %s used", output.Bytes(s.SizeBytes), output.Bytes(s.QuotaBytes)), nil
}

// noRoom says what still fills the quota: the history that was kept, or live
// data alone.
func (r *recovery) noRoom(s Status) error {
	const what = "%w: %.0f%% of the quota is used (%s of %s), by live data%s"
	full := func(more string) error {
		return fmt.Errorf(what, ErrNoRoom, 100*s.QuotaUsed(), output.Bytes(s.SizeBytes), output.Bytes(s.QuotaBytes), more)
	}
	if r.opts.Keep > 0 {
		return hint.With(full(fmt.Sprintf(" and the %d revisions that are kept", r.opts.Keep)),
			"drop history as a whole: etcdkit alarm recover --keep 0; if that is not enough, delete what is not needed, or restart the members with a larger --quota-backend-bytes")
	}
	return hint.With(full(" alone"), "delete what is not needed, which etcd allows, and run this again; or restart the members with a larger --quota-backend-bytes")
}

// prove writes through the cluster and removes what it wrote.
func (r *recovery) prove(ctx context.Context, facts Facts) (string, error) {
	var took time.Duration
	err := r.through(ctx, facts, func(ctx context.Context, client Operator) error {
		// With a lease the key ends though we may be killed.
		lease, err := client.Grant(ctx, probeSeconds)
		if err != nil {
			return fmt.Errorf("write a key: %w", err)
		}
		key := ProbePrefix + rand.Text()
		start := time.Now()
		if _, err := client.Put(ctx, key, "", clientv3.WithLease(lease.ID)); err != nil {
			return fmt.Errorf("write a key: %w", err)
		}
		took = time.Since(start)
		if _, err := client.Revoke(ctx, lease.ID); err != nil {
			return fmt.Errorf("remove the key %s: %w", key, err)
		}
		return nil
	})
	return "a write took " + output.Duration(took), err
}

// through runs short requests through a voter. They outlive a signal, so that
// nothing is left half done.
func (r *run) through(ctx context.Context, facts Facts, fn func(context.Context, Operator) error) error {
	client, err := r.anyOf(ctx, facts)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*defaultTimeout)
	defer cancel()
	return fn(ctx, client)
}

// anyOf opens a client at a voter.
func (r *run) anyOf(ctx context.Context, facts Facts) (Operator, error) {
	m, err := voter(facts)
	if err != nil {
		return nil, err
	}
	return r.tools.Operate(ctx, m.Endpoint)
}

// voter returns a member that can be asked for anything.
func voter(facts Facts) (Member, error) {
	i := slices.IndexFunc(facts.Members, func(m Member) bool { return m.Status != nil && m.Listed && !m.Learner })
	if i < 0 {
		return Member{}, fmt.Errorf("%w: no voter answers", ErrUnknown)
	}
	return facts.Members[i], nil
}

// voterWithQuorum refuses where no quorum is there to agree on anything.
func voterWithQuorum(facts Facts) error {
	voting := VotingOf(facts.Members)
	if leaderID(facts.Members) == 0 || !voting.Serves() {
		return hint.With(fmt.Errorf("%w: the cluster has no quorum (%s)", ErrRefused, voting), "%s", quorumNext)
	}
	return nil
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
