package health

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/hint"
)

// Membership is the part of *clientv3.Client that changes who is a member.
type Membership interface {
	MemberAddAsLearner(ctx context.Context, peerURLs []string) (*clientv3.MemberAddResponse, error)
	MemberRemove(ctx context.Context, id uint64) (*clientv3.MemberRemoveResponse, error)
	MemberPromote(ctx context.Context, id uint64) (*clientv3.MemberPromoteResponse, error)
}

// Change is a change of membership in the arithmetic of quorum.
type Change struct {
	Before Voting `json:"before"`
	After  Voting `json:"after"`
}

func (c Change) String() string {
	return "before: " + c.Before.String() + "; after: " + c.After.String()
}

// GuardAdd says what adding a member does to quorum. A learner changes
// nothing; a voter counts at once and is not alive before it was started, so
// that the second voter of a single-member cluster stops it
// (etcd-io/etcd#11633). The error is ErrRefused where quorum would be lost.
func GuardAdd(facts Facts, learner bool) (Change, error) {
	c := Change{Before: VotingOf(facts.Members)}
	c.After = c.Before
	if !learner {
		c.After = c.Before.With(false)
	}
	return c, c.guard(facts, "add the voter", "add it as a learner and promote it once it has caught up")
}

// GuardRemove says what removing the member does to quorum. The error is
// ErrRefused where quorum would be lost.
func GuardRemove(facts Facts, id uint64) (Change, error) {
	c := Change{Before: VotingOf(facts.Members)}
	c.After = c.Before
	i := slices.IndexFunc(facts.Members, func(m Member) bool { return m.ID == id && m.Listed })
	if i < 0 {
		return c, fmt.Errorf("%w with the id %016x in the cluster", ErrNoMember, id)
	}
	if m := facts.Members[i]; !m.Learner {
		c.After = c.Before.Without(m.Life())
	}
	return c, c.guard(facts, "remove "+facts.Members[i].Named(), aliveFirst(facts))
}

// GuardPromote says what giving the learner a vote does to quorum. The error is
// ErrRefused where quorum would be lost, and where the learner is not alive:
// its vote counts at once.
func GuardPromote(facts Facts, id uint64) (Change, error) {
	c := Change{Before: VotingOf(facts.Members)}
	c.After = c.Before
	i := slices.IndexFunc(facts.Members, func(m Member) bool { return m.ID == id && m.Listed })
	if i < 0 {
		return c, fmt.Errorf("%w with the id %016x in the cluster", ErrNoMember, id)
	}
	m := facts.Members[i]
	if !m.Learner {
		return c, nil // etcd says so itself
	}
	life := m.Life()
	c.After = c.Before.With(life.Alive)
	what := "promote " + m.Named()
	if err := c.guard(facts, what, aliveFirst(facts)); err != nil {
		return c, err
	}
	if !life.Alive {
		return c, hint.With(fmt.Errorf("%w: %s: %w: %s (%s)", ErrRefused, what, errNotAlive, life.Evidence, c),
			"start the learner, and wait until it has caught up with: etcdkit member promote %s --wait; or --force", m.IDHex)
	}
	return c, nil
}

// errNotAlive is a member that must be alive for what is asked.
var errNotAlive = errors.New("the member is not alive")

// aliveFirst names the voters that are not alive, which have to be first.
func aliveFirst(facts Facts) string {
	var missing []string
	for _, m := range facts.Members {
		if life := m.Life(); m.Listed && !m.Learner && !life.Alive {
			missing = append(missing, m.Named())
		}
	}
	if len(missing) == 0 {
		return "add a member first"
	}
	return "bring back first: " + strings.Join(missing, ", ")
}

func (c Change) guard(facts Facts, what, next string) error {
	switch {
	case !c.Before.Serves() && readsServed(facts):
		return hint.With(fmt.Errorf("%w: %s: not enough voters can be seen from here (%s)", ErrRefused, what, c.Before),
			"%s; or --force", elsewhereNext)
	case !c.Before.Serves():
		return hint.With(fmt.Errorf("%w: %s: there is no quorum to agree on it (%s)", ErrRefused, what, c.Before),
			"%s", quorumNext)
	case !c.After.Serves():
		return hint.With(fmt.Errorf("%w: %s: the cluster would lose quorum (%s)", ErrRefused, what, c), "%s, or --force", next)
	default:
		return nil
	}
}

// unhealthyRetry is how long etcd's "unhealthy cluster" is retried: a server
// says so until its peers have been connected for 5 s.
const unhealthyRetry = 10 * time.Second

// Patiently runs a change of membership, and again while the servers call the
// cluster unhealthy, which they do for some seconds after any of them started.
func Patiently(ctx context.Context, change func(context.Context) error) error {
	deadline := time.Now().Add(unhealthyRetry)
	for {
		once, cancel := context.WithTimeout(ctx, 2*defaultTimeout)
		err := change(once)
		cancel()
		if !is(err, rpctypes.ErrUnhealthy) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(gateInterval):
		}
	}
}

// is compares errors that may have lost their type on the way.
func is(err, known error) bool {
	return err != nil && (errors.Is(err, known) || err.Error() == known.Error())
}

// PromoteOptions bounds a promotion that waits.
type PromoteOptions struct {
	Deadline time.Duration // 10 min
	// Progress, if set, is told how far the learner is.
	Progress func(Promotion)
}

// Promotion is how far a learner is.
type Promotion struct {
	Started bool   // it has published its client URLs
	Behind  uint64 // entries that it has not applied yet, where that is known
}

const (
	defaultPromoteDeadline = 10 * time.Minute
	promoteInterval        = time.Second
)

// Promote makes a learner a voter, as soon as it has been started and has
// caught up (etcd-io/etcd#15107). Once it waits, a cluster that does not answer
// or has lost its quorum is waited for as well.
func Promote(ctx context.Context, tools Tools, endpoints []string, id uint64, opts PromoteOptions) error {
	if opts.Deadline <= 0 {
		opts.Deadline = defaultPromoteDeadline
	}
	deadline := time.Now().Add(opts.Deadline)
	r := newRun(tools, endpoints, DefragOptions{})
	for waiting := false; ; waiting = true {
		err := r.promoteOnce(ctx, id, opts.Progress)
		passes := errors.Is(err, errNotYet) || waiting && (errors.Is(err, ErrUnknown) || errors.Is(err, ErrRefused))
		if !passes {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("promote %016x: not ready within %s: %w", id, opts.Deadline, err)
		}
		if err := r.wait(ctx, promoteInterval); err != nil {
			return err
		}
	}
}

// errNotYet is a learner that needs more time.
var errNotYet = errors.New("the learner is not ready")

func (r *run) promoteOnce(ctx context.Context, id uint64, progress func(Promotion)) error {
	facts, err := r.look(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(facts.Members, func(m Member) bool { return m.ID == id && m.Listed })
	if i < 0 {
		return fmt.Errorf("%w with the id %016x in the cluster", ErrNoMember, id)
	}
	learner := facts.Members[i]
	if !learner.Learner {
		return nil
	}
	if progress != nil {
		progress(Promotion{Started: len(learner.ClientURLs) > 0, Behind: behind(facts, learner)})
	}
	if len(learner.ClientURLs) == 0 {
		return fmt.Errorf("%w: it has not been started", errNotYet)
	}
	_, err = GuardPromote(facts, id)
	if errors.Is(err, errNotAlive) {
		return fmt.Errorf("%w: %s", errNotYet, learner.Life().Evidence)
	}
	if err != nil {
		return err
	}
	client, err := r.anyOf(ctx, facts)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	err = Patiently(context.WithoutCancel(ctx), func(ctx context.Context) error {
		_, err := client.MemberPromote(ctx, id)
		return err
	})
	if is(err, rpctypes.ErrMemberLearnerNotReady) {
		return fmt.Errorf("%w: %d entries behind", errNotYet, behind(facts, learner))
	}
	return err
}

// behind is how many entries the member has not applied that others have.
func behind(facts Facts, m Member) uint64 {
	var highest uint64
	for _, o := range facts.Members {
		if o.Status != nil {
			highest = max(highest, o.Status.Index)
		}
	}
	if m.Status == nil {
		return highest
	}
	return highest - min(highest, m.Status.Applied)
}

// StartCommand is the command that starts a member that was just added, where
// the others are members. Client URLs are not part of the cluster's knowledge
// yet, so they are guessed from the peer URLs.
func StartCommand(name string, peerURLs []string, members []Member) string {
	var initial, clients []string
	names := map[string]int{name: 1}
	for _, m := range members {
		names[m.Name]++
	}
	for _, m := range members {
		if sharesURL(m.PeerURLs, peerURLs) {
			continue // the new one itself
		}
		// etcd finds the others by their peer URLs, and takes one name for one member.
		label := m.Name
		if label == "" || names[label] > 1 {
			label = m.IDHex
		}
		for _, u := range m.PeerURLs {
			initial = append(initial, label+"="+u)
		}
	}
	for _, u := range peerURLs {
		initial = append(initial, name+"="+u)
		if parsed, err := url.Parse(u); err == nil {
			clients = append(clients, parsed.Scheme+"://"+strings.TrimSuffix(parsed.Host, ":"+parsed.Port())+":2379")
		}
	}
	peers, listen := strings.Join(peerURLs, ","), strings.Join(clients, ",")
	return strings.Join([]string{
		"etcd --name " + name,
		"--data-dir " + name + ".etcd",
		"--initial-cluster " + strings.Join(initial, ","),
		"--initial-cluster-state existing",
		"--initial-advertise-peer-urls " + peers,
		"--listen-peer-urls " + peers,
		"--advertise-client-urls " + listen,
		"--listen-client-urls " + listen,
	}, " \\\n  ")
}
