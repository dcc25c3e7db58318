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

// stopped says what is left, and how to go on.
func (r *replacement) stopped(from int, err error) error {
	for _, a := range r.out.Plan[from:] {
		r.out.Leftover = append(r.out.Leftover, a.Action+" "+a.Member)
	}
	if !r.noted {
		return hint.With(err, "run the same command again to go on, with %s for the old member: it starts from what is", r.note.OldID)
	}
	return hint.With(err, "run the same command again to go on: it starts from what is")
}

// find looks at the cluster, and for the notes of a replacement that began.
func (r *replacement) find(ctx context.Context) (Facts, error) {
	facts, err := r.look(ctx)
	if err != nil {
		return facts, err
	}
	if err := voterWithQuorum(facts); err != nil {
		return facts, err
	}
	r.old, r.new = nil, nil
	for i, m := range facts.Members {
		switch {
		case !m.Listed:
		case r.isOld(m):
			r.old = &facts.Members[i]
		case sharesURL(m.PeerURLs, r.opts.PeerURLs):
			r.new = &facts.Members[i]
		}
	}
	if r.note.OldID != "" {
		return facts, nil
	}
	begun, err := r.begun(ctx, facts)
	switch {
	case err != nil:
		return facts, err
	case begun != nil && (begun.Name != r.opts.Name || !slices.Equal(begun.PeerURLs, r.opts.PeerURLs)):
		return facts, hint.With(fmt.Errorf("%w: %s is being replaced by %s at %s already", ErrRefused,
			r.opts.Old, begun.Name, strings.Join(begun.PeerURLs, ",")), "finish that one first: --name %s --peer-urls %s", begun.Name, strings.Join(begun.PeerURLs, ","))
	case begun != nil:
		r.note, r.noted = *begun, true
		if r.old != nil && r.old.IDHex != begun.OldID { // the new one has the old one's name
			r.new, r.old = r.old, nil
		}
		return facts, nil
	case r.done():
		return facts, nil
	case r.old == nil && slices.ContainsFunc(corruptGone(facts), func(id uint64) bool { return sameID(output.ID(id), r.opts.Old) }):
		r.note = note{Old: r.opts.Old, OldID: r.opts.Old, Name: r.opts.Name, PeerURLs: r.opts.PeerURLs}
		return facts, nil // it went before, without a note
	case r.old == nil:
		return facts, fmt.Errorf("%w %q in the cluster", ErrNoMember, r.opts.Old)
	}
	if err := r.unclaimed(facts); err != nil {
		return facts, err
	}
	r.note = note{Old: r.opts.Old, OldID: r.old.IDHex, OldName: r.old.Name, Name: r.opts.Name, PeerURLs: r.opts.PeerURLs}
	return facts, nil
}

// done reports whether the new member is there and the old one gone, though no
// note is left of it: the end of an earlier run was not seen.
func (r *replacement) done() bool {
	return r.old == nil && r.new != nil && !r.new.Learner && r.new.Name == r.opts.Name
}

// unclaimed refuses peer URLs of a member that is neither the old one nor could
// be the new one, added before: it would be taken for the new one, and the
// cluster would end a member short.
func (r *replacement) unclaimed(facts Facts) error {
	for _, m := range facts.Members {
		if !m.Listed || r.isOld(m) || !sharesURL(m.PeerURLs, r.opts.PeerURLs) {
			continue
		}
		if !m.Learner || m.Name != "" && m.Name != r.opts.Name {
			return hint.With(fmt.Errorf("%w: peer URL %s belongs to member %s", ErrRefused, strings.Join(r.opts.PeerURLs, ","), m.Label()),
				"give the peer URL of the new member with --peer-urls")
		}
	}
	return nil
}

// isOld recognizes the old member: once it is known by its id alone, for the
// new one may have its name.
func (r *replacement) isOld(m Member) bool {
	if r.note.OldID != "" {
		return m.IDHex == r.note.OldID
	}
	return named(m, r.opts.Old)
}

func sharesURL(a, b []string) bool {
	return slices.ContainsFunc(a, func(u string) bool { return slices.Contains(b, u) })
}

// planned is what is left to do.
func (r *replacement) planned(facts Facts) ([]Action, error) {
	plan := []Action{}
	var refusal error
	if r.done() && r.note.OldID == "" {
		return append(plan, Action{Action: actionSkip, Member: r.new.Label(), Detail: "has a vote already, and there is no member " + r.opts.Old}), nil
	}
	first := r.old != nil && (!r.old.Reachable || sharesURL(r.old.PeerURLs, r.opts.PeerURLs))
	if first {
		var c Change
		if c, refusal = GuardRemove(facts, r.old.ID); refusal == nil && r.old.Reachable && r.old.ID == leaderID(facts.Members) {
			plan = append(plan, Action{Action: actionMove, Member: r.old.Label(), Detail: "the leader hands on before it goes"})
		}
		plan = append(plan, Action{Action: actionRemove, Member: r.old.Label(), Detail: why(*r.old) + "; " + c.String()})
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
		if r.old.ID == leaderID(facts.Members) {
			plan = append(plan, Action{Action: actionMove, Member: r.old.Label(), Detail: "the leader hands on before it goes"})
		}
		plan = append(plan, Action{Action: actionRemove, Member: r.old.Label(), Detail: "alive until the new member has a vote"})
	}
	return plan, refusal
}

func why(old Member) string {
	if old.Reachable {
		return "the new member takes its peer URL"
	}
	return "it does not answer"
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
