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
)

const (
	defaultGateTimeout = 2 * time.Minute
	gateInterval       = 500 * time.Millisecond
	minLockTTL         = 20 * time.Second
)

// gate waits until the cluster is as well as it was in facts, and returns
// what it saw. Before the first member there is no pause.
func (r *run) gate(ctx context.Context, facts Facts, first bool) (Facts, error) {
	if !first && r.opts.Pause > 0 {
		if err := r.wait(ctx, r.opts.Pause); err != nil {
			return facts, err
		}
	}
	deadline := time.Now().Add(r.gateTimeout())
	for {
		if err := r.mayGoOn(ctx); err != nil {
			return facts, err
		}
		seen, err := r.look(ctx)
		if err == nil {
			if err = passes(facts, seen, r.opts); err == nil {
				return seen, nil
			}
		}
		if time.Now().After(deadline) || errors.Is(err, errGone) || errors.Is(err, errArmed) {
			return facts, notWell(err)
		}
		if err := r.wait(ctx, gateInterval); err != nil {
			return facts, err
		}
	}
}

// notWell is why the gate stays shut: a judgement, unless it has another name.
func notWell(err error) error {
	for _, known := range []error{ErrRefused, ErrUnhealthy, ErrUnknown, ErrTwoClusters} {
		if errors.Is(err, known) {
			return fmt.Errorf("waiting for the cluster to be healthy: %w", err)
		}
	}
	return fmt.Errorf("%w: %w", ErrUnhealthy, err)
}

// errGone is a member that is no longer in the cluster: no waiting helps.
var errGone = errors.New("the members have changed")

// errArmed is an alarm, which stays until somebody disarms it: likewise.
var errArmed = fmt.Errorf("%w", ErrUnhealthy)

// passes is the gate's judgement: nothing critical, everybody there who was
// there before, and everybody caught up.
func passes(before, now Facts, opts DefragOptions) error {
	for _, was := range before.Members {
		i := slices.IndexFunc(now.Members, func(m Member) bool { return m.ID == was.ID })
		switch {
		case was.Status == nil || !was.Listed:
			continue
		case i < 0 || !now.Members[i].Listed:
			return fmt.Errorf("%w: %s is gone", errGone, was.Label())
		case now.Members[i].Status == nil:
			return fmt.Errorf("%s does not answer: %s", was.Label(), now.Members[i].Error)
		}
	}
	report := Judge(now, Options{NoSpace: opts.NoSpace})
	for _, p := range report.Problems {
		// A quota nearly used up is why we are here.
		if p.Severity == Critical && p.Check != KindQuota {
			kind := ErrUnhealthy
			if p.Check == KindAlarms {
				kind = errArmed
			}
			return hint.With(fmt.Errorf("%w: %s", kind, strings.TrimPrefix(p.Member+": "+p.Evidence, ": ")), "%s", p.Next)
		}
	}
	if voting := VotingOf(now.Members); voting.Alive < voting.Voters && voting.CanLose() == 0 && !opts.Force {
		return fmt.Errorf("%w: %s", ErrRefused, voting)
	}
	return caughtUp(now)
}

// caughtUp reports whether every member has applied nearly all that any has
// committed.
func caughtUp(facts Facts) error {
	const near = 1000
	var highest uint64
	for _, m := range facts.Members {
		if m.Status != nil && m.Listed {
			highest = max(highest, m.Status.Index)
		}
	}
	for _, m := range facts.Members {
		if m.Status != nil && m.Listed && m.Status.Applied+near < highest {
			return fmt.Errorf("%s is %d entries behind", m.Label(), highest-m.Status.Applied)
		}
	}
	return nil
}

// mayGoOn reports a signal or a lost lock.
func (r *run) mayGoOn(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if r.lock == nil {
		return nil
	}
	select {
	case <-r.lock.Lost():
		return fmt.Errorf("%w: it was lost, so another maintenance may have begun", ErrLocked)
	default:
		return nil
	}
}

func (r *run) wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// takeLock takes the lock in etcd, or the local one where etcd grants no
// lease.
func (r *run) takeLock(ctx context.Context, facts Facts) error {
	if r.lock != nil {
		return nil
	}
	longest := time.Duration(0)
	for _, m := range facts.Members {
		if m.Status != nil {
			longest = max(longest, forecast(m.Status.InUseBytes))
		}
	}
	lock, err := r.tools.Lock(ctx, minLockTTL+3*longest)
	kind := "etcd"
	if errors.Is(err, ErrNoLease) && r.tools.LocalLock != nil {
		kind = "local"
		// A lock that was taken before the alarm is still held.
		if err := r.etcdLockFree(ctx, facts); err != nil {
			return err
		}
		lock, err = r.tools.LocalLock()
	}
	if err != nil {
		return err
	}
	r.lock, r.out.Lock = lock, kind
	return nil
}

// idle looks into the metrics whether a member is being defragmented already,
// which others' tools do without our lock.
func (r *run) idle(ctx context.Context, plan []Action) error {
	for _, a := range plan {
		if a.Action != actionDefrag {
			continue
		}
		if page := r.scrape(ctx, a.endpoint); page.value(metricDefrag) > 0 {
			return fmt.Errorf("%w: %s is being defragmented already", ErrRefused, a.Member)
		}
	}
	return nil
}

// free waits until the member serves no snapshot, as far as its metrics tell:
// a defragmentation would wait for that, with the whole member standing still.
func (r *run) free(ctx context.Context, a Action) error {
	deadline := time.Now().Add(r.gateTimeout())
	for r.scrape(ctx, a.endpoint).snapshots() > 0 && !r.opts.Force {
		if time.Now().After(deadline) {
			return fmt.Errorf("%w: %s is serving a snapshot, which would make it stand still until that ends", ErrRefused, a.Member)
		}
		if err := r.wait(ctx, gateInterval); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) gateTimeout() time.Duration {
	if r.dry {
		return 0
	}
	if r.opts.GateTimeout > 0 {
		return r.opts.GateTimeout
	}
	return defaultGateTimeout
}

// scrape reads a member's metrics. Nothing depends on them alone, so that a
// page that cannot be read is an empty one.
func (r *run) scrape(ctx context.Context, endpoint string) Samples {
	if r.tools.Scrape == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	page, err := r.tools.Scrape(ctx, endpoint)
	if err != nil {
		return nil
	}
	return page
}

func compaction(facts Facts, keep int64) Action {
	if rev := newestRevision(facts); rev <= keep {
		return Action{Action: actionCompact, Detail: fmt.Sprintf("nothing: the newest revision is %d, and %d are kept", rev, keep)}
	}
	return Action{
		Action: actionCompact,
		Detail: fmt.Sprintf("at revision %d, keeping %d: history is what a defragmentation cannot give back", newestRevision(facts)-keep, keep),
	}
}

func newestRevision(facts Facts) (rev int64) {
	for _, m := range facts.Members {
		if m.Status != nil {
			rev = max(rev, m.Status.Revision)
		}
	}
	return rev
}

// settleTime is how long a server may take to count the pages that a
// compaction freed: it does so with the next write that it commits.
const settleTime = time.Second

// settleKey is written and deleted to make the servers count.
const settleKey = "etcdkit/compacted"

// compactFirst compacts before the plan that counts is made, for it changes
// what is worth a defragmentation.
func (r *run) compactFirst(ctx context.Context, facts Facts) (Facts, error) {
	if err := r.mayGoOn(ctx); err != nil {
		return facts, err
	}
	if err := r.do(actionCompact, "", func() (string, error) { return r.compact(ctx, facts) }); err != nil {
		return facts, err
	}
	if err := r.settle(ctx, facts); err != nil {
		return facts, err
	}
	facts, err := r.plan(ctx)
	if r.tools.Planned != nil {
		r.tools.Planned(r.out.Plan)
	}
	if err != nil {
		return facts, err
	}
	return facts, r.idle(ctx, r.out.Plan)
}

// ready refuses whatever would end the run later, before its first change: a
// compaction cannot be taken back, nor can a member that was removed.
func (r *run) ready(ctx context.Context, facts Facts) (Facts, error) {
	if err := r.idle(ctx, r.out.Plan); err != nil {
		return facts, err
	}
	if r.dry {
		if err := r.lockFree(ctx, facts); err != nil {
			return facts, err
		}
	}
	return r.gate(ctx, facts, true)
}

// lockFree refuses where another maintenance holds a lock that the run would
// take: the one in etcd, and the local one where an alarm keeps etcd from
// granting a lease.
func (r *run) lockFree(ctx context.Context, facts Facts) error {
	if err := r.etcdLockFree(ctx, facts); err != nil {
		return err
	}
	noLease := len(alarmed(facts, alarmNoSpace))+len(alarmed(facts, alarmCorrupt)) > 0
	if noLease && r.tools.LocalLockFree != nil {
		return r.tools.LocalLockFree()
	}
	return nil
}

// etcdLockFree refuses where another maintenance holds the lock in etcd.
func (r *run) etcdLockFree(ctx context.Context, facts Facts) error {
	return r.through(ctx, facts, func(ctx context.Context, client Operator) error {
		resp, err := client.Get(ctx, LockKey+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())
		switch {
		case err != nil && refused(err):
			return nil // whether the lock may be taken shows when it is
		case err != nil:
			return fmt.Errorf("%w: look for the lock: %w", ErrUnknown, err)
		case resp.Count > 0:
			return hint.With(fmt.Errorf("%w, under the key %s/", ErrLocked, LockKey), "wait for it")
		}
		return nil
	})
}

// settle waits until the servers have counted what a compaction freed. Where
// the write fails, the counts are those of before, which harms nothing.
func (r *run) settle(ctx context.Context, facts Facts) error {
	_ = r.through(ctx, facts, func(ctx context.Context, client Operator) error {
		if _, err := client.Put(ctx, settleKey, ""); err != nil {
			return err
		}
		_, err := client.Delete(ctx, settleKey)
		return err
	})
	return r.wait(ctx, settleTime)
}

// compact drops history on all members and waits until the pages are free.
func (r *run) compact(ctx context.Context, facts Facts) (string, error) {
	rev := newestRevision(facts) - r.opts.Keep
	if rev <= 0 {
		return "nothing to compact", nil
	}
	member, err := voter(facts)
	if err != nil {
		return "", err
	}
	client, err := operate(ctx, r.tools, member, facts.Cluster.ID)
	if err != nil {
		return "", err
	}
	defer func() { _ = client.Close() }()
	running, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound(member.Status.SizeBytes))
	defer cancel()
	err = Attended(running, client, r.opts.StallTimeout, func(ctx context.Context) error {
		_, err := client.Compact(ctx, rev, clientv3.WithCompactPhysical())
		return err
	})
	if isCompacted(err) {
		return fmt.Sprintf("revision %d was compacted before", rev), nil
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("at revision %d", rev), nil
}
