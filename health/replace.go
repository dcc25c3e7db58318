package health

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/output"
)

// ReplaceOptions says which member gives way to which.
type ReplaceOptions struct {
	Old      string // name, id or endpoint
	Name     string
	PeerURLs []string
	Deadline time.Duration // for the new member to start and catch up; 30 min
	Force    bool
	DryRun   bool

	// Added, if set, is told the command that starts the new member.
	Added func(command string)
	// Progress, if set, is told how far the new member is.
	Progress func(Promotion)
}

const (
	actionRemove  = "remove"
	actionAdd     = "add"
	actionPromote = "promote"

	defaultReplaceDeadline = 30 * time.Minute
)

// replacement is a replacement in progress.
type replacement struct {
	*run
	opts ReplaceOptions
	old  *Member // nil once it is removed
	new  *Member // nil before it is added
	note note
	// noted is false where CORRUPT, which refuses writes, kept the note away.
	noted bool
}

// Replace puts a new member in the place of an old one. An old member that is
// dead, or that has the new one's peer URL, goes first; one that is alive
// stays until the new one is a voter. Each step is decided by what is, so that
// an interrupted replacement goes on where it ended.
func Replace(ctx context.Context, tools Tools, endpoints []string, opts ReplaceOptions) (*Outcome, error) {
	if opts.Old == "" || opts.Name == "" || len(opts.PeerURLs) == 0 {
		return newRun(tools, endpoints, DefragOptions{}).out, errors.New("replace member: an old member, a new name and its peer URLs are needed")
	}
	if opts.Deadline <= 0 {
		opts.Deadline = defaultReplaceDeadline
	}
	r := &replacement{run: newRun(tools, endpoints, DefragOptions{Force: opts.Force}), opts: opts}
	err := r.whole(ctx)
	if r.lock != nil {
		err = errors.Join(err, r.lock.Release(ctx))
	}
	return r.out, err
}

func (r *replacement) whole(ctx context.Context) error {
	facts, err := r.find(ctx)
	if err != nil {
		return err
	}
	if r.out.Plan, err = r.planned(facts); err != nil && !r.opts.Force {
		return err
	}
	if r.tools.Planned != nil {
		r.tools.Planned(r.out.Plan)
	}
	if r.opts.DryRun || r.note.OldID == "" {
		return nil
	}
	if err := r.takeLock(ctx, facts); err != nil {
		return err
	}
	if err := r.write(ctx, facts); err != nil {
		return err
	}
	for i, a := range r.out.Plan {
		if err := r.mayGoOn(ctx); err != nil {
			return r.stopped(i, err)
		}
		if err := r.step(ctx, a.Action); err != nil {
			return r.stopped(i, err)
		}
	}
	return r.forget(ctx, facts)
}

// stopped says what is left, how to go on, and how to undo it.
func (r *replacement) stopped(from int, err error) error {
	for _, a := range r.out.Plan[from:] {
		r.out.Leftover = append(r.out.Leftover, a.Action+" "+a.Member)
	}
	if !r.noted {
		return hint.With(err, "run the same command again to go on, with %s for the old member: it starts from what is", r.note.OldID)
	}
	return hint.With(err, "run the same command again to go on: it starts from what is; to give it up: %s", abortCommand(r.note.OldID))
}

// find looks at the cluster, and places the old member and the new one in it.
func (r *replacement) find(ctx context.Context) (Facts, error) {
	facts, err := r.look(ctx)
	if err != nil {
		return facts, err
	}
	if err := voterWithQuorum(facts); err != nil {
		return facts, err
	}
	if r.note.OldID == "" {
		if err := r.begin(ctx, facts); err != nil {
			return facts, err
		}
	}
	r.place(facts)
	return facts, nil
}

// place finds the old member by its id, and the new one by its peer URL.
func (r *replacement) place(facts Facts) {
	r.old, r.new = nil, nil
	for i, m := range facts.Members {
		switch {
		case !m.Listed:
		case m.IDHex == r.note.OldID:
			r.old = &facts.Members[i]
		case sharesURL(m.PeerURLs, r.opts.PeerURLs):
			r.new = &facts.Members[i]
		}
	}
}

// begin decides which member is meant: the one of a replacement that has begun,
// else the only one that is called so.
func (r *replacement) begin(ctx context.Context, facts Facts) error {
	begun, err := r.begun(ctx, facts)
	switch {
	case err != nil:
		return err
	case begun != nil && (begun.Name != r.opts.Name || !sameURLs(begun.PeerURLs, r.opts.PeerURLs)):
		return hint.With(fmt.Errorf("%w: %s is being replaced by %s at %s already", ErrRefused,
			r.opts.Old, begun.Name, strings.Join(begun.PeerURLs, ",")), "%s", begun.ways())
	case begun != nil:
		r.note, r.noted = *begun, true
		return nil
	}
	old, err := Resolve(facts.Listed(), r.opts.Old)
	switch {
	case errors.Is(err, ErrNoMember):
		return r.withoutOld(facts, err)
	case err != nil:
		return err
	}
	if err := r.unclaimed(facts, old); err != nil {
		return err
	}
	r.note = note{Old: r.opts.Old, OldID: old.IDHex, OldName: old.Name, Name: r.opts.Name, PeerURLs: r.opts.PeerURLs}
	return nil
}

// withoutOld goes on though no member is the old one: where an earlier run is
// done and its end was not seen, or where the old one went without a note.
func (r *replacement) withoutOld(facts Facts, missing error) error {
	r.place(facts)
	switch {
	case r.done():
		return nil
	case slices.ContainsFunc(corruptGone(facts), func(id uint64) bool { return sameID(output.ID(id), r.opts.Old) }):
		r.note = note{Old: r.opts.Old, OldID: r.opts.Old, Name: r.opts.Name, PeerURLs: r.opts.PeerURLs}
		return nil
	}
	return missing
}

// done reports whether the new member is there and the old one gone, though no
// note is left of it: the end of an earlier run was not seen.
func (r *replacement) done() bool {
	return r.old == nil && r.new != nil && !r.new.Learner && r.new.Name == r.opts.Name
}

// unclaimed refuses peer URLs of a member that is neither the old one nor could
// be the new one, added before: it would be taken for the new one, and the
// cluster would end a member short.
func (r *replacement) unclaimed(facts Facts, old Member) error {
	for _, m := range facts.Members {
		if !m.Listed || m.ID == old.ID || !sharesURL(m.PeerURLs, r.opts.PeerURLs) {
			continue
		}
		if !m.Learner || m.Name != "" && m.Name != r.opts.Name {
			return hint.With(fmt.Errorf("%w: peer URL %s belongs to member %s", ErrRefused, strings.Join(r.opts.PeerURLs, ","), m.Named()),
				"give the peer URL of the new member with --peer-urls")
		}
	}
	return nil
}

// planned is what is left to do, and why it would be refused: every step is
// checked before the first.
func (r *replacement) planned(facts Facts) ([]Action, error) {
	plan := []Action{}
	if r.note.OldID == "" && r.done() {
		return append(plan, Action{Action: actionSkip, Member: r.new.Label(), MemberIDHex: r.new.IDHex, Detail: "has a vote already, and there is no member " + r.opts.Old}), nil
	}
	first := r.old != nil && (!r.old.Life().Alive || sharesURL(r.old.PeerURLs, r.opts.PeerURLs))
	if first {
		c, _ := GuardRemove(facts, r.old.ID)
		plan = append(plan, r.leaving(facts, why(*r.old)+"; "+c.String())...)
	}
	if r.new == nil {
		plan = append(plan, Action{
			Action: actionAdd, Member: r.opts.Name,
			Detail: "as a learner at " + strings.Join(r.opts.PeerURLs, ",") + ": it has no vote, so quorum stays as it is",
		})
	}
	if r.new == nil || r.new.Learner {
		plan = append(plan, Action{Action: actionPromote, Member: r.opts.Name, Detail: "once it is started and has caught up"})
	}
	if r.old != nil && !first {
		plan = append(plan, r.leaving(facts, "alive until the new member has a vote")...)
	}
	return plan, r.gates(facts, plan)
}

// leaving is how the old member goes.
func (r *replacement) leaving(facts Facts, why string) []Action {
	var plan []Action
	if r.old.Life().Alive && r.old.ID == leaderID(facts.Members) {
		plan = append(plan, Action{Action: actionMove, Member: r.old.Label(), MemberIDHex: r.old.IDHex, Detail: "the leader hands on before it goes"})
	}
	return append(plan, Action{Action: actionRemove, Member: r.old.Label(), MemberIDHex: r.old.IDHex, Detail: why})
}

// gates checks what each step of the plan needs, as far as the members tell
// now: quorum after every change, and room for a learner.
func (r *replacement) gates(facts Facts, plan []Action) error {
	voting := VotingOf(facts.Members)
	for _, a := range plan {
		before := voting
		switch a.Action {
		case actionRemove:
			voting = voting.Without(r.old.Life())
		case actionPromote:
			voting = voting.With(true) // not before it is alive
		case actionAdd:
			if err := roomForLearner(facts); err != nil {
				return err
			}
		case actionMove:
			if len(Successors(facts, r.old.ID)) == 0 {
				return hint.With(fmt.Errorf("%w: %w: no other voter is alive", ErrRefused, ErrNoSuccessor), "%s", aliveFirst(facts))
			}
		}
		if voting != before {
			c := Change{before, voting}
			if err := c.guard(facts, strings.TrimSpace(a.Action+" "+a.Member), aliveFirst(facts)); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxLearners is how many learners etcd takes, unless it is configured.
const maxLearners = 1

// roomForLearner refuses where etcd would refuse the new member as one learner
// too many, after the old one was removed.
func roomForLearner(facts Facts) error {
	var learners []Member
	for _, m := range facts.Members {
		if m.Listed && m.Learner {
			learners = append(learners, m)
		}
	}
	if len(learners) < maxLearners {
		return nil
	}
	return hint.With(fmt.Errorf("%w: the new member is added as a learner, and etcd takes %d at a time: %s", ErrRefused, maxLearners, ids(learners)),
		"promote it (etcdkit member promote %s --wait) or remove it (etcdkit member remove %s) first; --force goes on where the servers run with a higher --max-learners",
		learners[0].IDHex, learners[0].IDHex)
}

func why(old Member) string {
	if life := old.Life(); !life.Alive {
		return "it is not alive: " + life.Evidence
	}
	return "the new member takes its peer URL"
}

// step does one thing, after another look.
func (r *replacement) step(ctx context.Context, action string) error {
	facts, err := r.find(ctx)
	if err != nil {
		return err
	}
	switch action {
	case actionMove:
		if r.old == nil || r.old.ID != leaderID(facts.Members) {
			return nil
		}
		return r.do(action, r.old.Label(), func() (string, error) {
			to, err := MoveLeader(ctx, r.tools, facts, r.old.ID)
			return "to " + to.Label(), err
		})
	case actionRemove:
		if r.old == nil {
			return nil
		}
		return r.do(action, r.old.Label(), func() (string, error) { return r.remove(ctx, facts) })
	case actionAdd:
		if r.new != nil {
			return nil
		}
		return r.do(action, r.opts.Name, func() (string, error) { return r.add(ctx, facts) })
	default:
		return r.do(action, r.opts.Name, func() (string, error) { return r.promote(ctx, facts) })
	}
}

// promote waits for the new member, which somebody has to start.
func (r *replacement) promote(ctx context.Context, facts Facts) (string, error) {
	if r.new == nil {
		return "", fmt.Errorf("%w at %s", ErrNoMember, strings.Join(r.opts.PeerURLs, ","))
	}
	if len(r.new.ClientURLs) == 0 && r.opts.Added != nil {
		r.opts.Added(StartCommand(r.opts.Name, r.opts.PeerURLs, facts.Members))
	}
	err := Promote(ctx, r.tools, r.endpoints, r.new.ID, PromoteOptions{Deadline: r.opts.Deadline, Progress: r.opts.Progress})
	if gone := corruptGone(facts); len(gone) > 0 {
		return "has a vote" + staysArmed(facts, gone[0]), err
	}
	return "has a vote", err
}

func (r *replacement) remove(ctx context.Context, facts Facts) (string, error) {
	c, err := GuardRemove(facts, r.old.ID)
	if err != nil && !r.opts.Force {
		return "", err
	}
	err = r.change(ctx, facts, func(ctx context.Context, client Operator) error {
		_, err := client.MemberRemove(ctx, r.old.ID)
		if is(err, rpctypes.ErrMemberNotFound) {
			return nil
		}
		return err
	})
	return c.After.String() + staysArmed(facts, r.old.ID), err
}

func (r *replacement) add(ctx context.Context, facts Facts) (string, error) {
	id := uint64(0)
	err := r.change(ctx, facts, func(ctx context.Context, client Operator) error {
		resp, err := client.MemberAddAsLearner(ctx, r.opts.PeerURLs)
		if err == nil {
			id = resp.Member.ID
		}
		return err
	})
	if err != nil {
		return "", err
	}
	return "learner " + output.ID(id), nil
}

// change runs a change through a member that stays. It outlives a signal.
func (r *replacement) change(ctx context.Context, facts Facts, fn func(context.Context, Operator) error) error {
	stay := facts
	if r.old != nil {
		stay.Members = slices.DeleteFunc(slices.Clone(facts.Members), func(m Member) bool { return m.ID == r.old.ID })
	}
	client, err := r.anyOf(ctx, stay)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	return Patiently(context.WithoutCancel(ctx), func(ctx context.Context) error { return fn(ctx, client) })
}
