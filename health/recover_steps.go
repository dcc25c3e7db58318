package health

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/output"
)

// survey shows what fills the database, and refuses where live data alone do:
// those stay, whatever is compacted.
func (r *recovery) survey(ctx context.Context, facts Facts, armed []uint64) error {
	m, err := voter(facts)
	if err != nil {
		return err
	}
	err = r.do(actionSurvey, "", func() (string, error) {
		client, err := dialIdentified(ctx, r.tools.Doors, m, facts.Cluster.ID)
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
	if err != nil {
		return err
	}
	for _, m := range facts.Members { // live data stay, whatever is compacted
		if s := m.Status; slices.Contains(armed, m.ID) && s != nil && s.QuotaBytes > 0 && float64(r.out.Content.LiveBytes) >= r.opts.DisarmBelow*float64(s.QuotaBytes) {
			return hint.With(fmt.Errorf("%w: %w: live data alone hold %s, of a quota of %s at %s; a compaction would only cost history",
				ErrRefused, ErrNoRoom, output.Bytes(r.out.Content.LiveBytes), output.Bytes(s.QuotaBytes), m.Named()), "%s", makeRoomNext)
		}
	}
	return nil
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
	return hint.With(full(" alone"), "%s", makeRoomNext)
}

// makeRoomNext is what helps where live data fill the quota.
const makeRoomNext = "delete what is not needed, which etcd allows, and run this again; or restart the members with a larger --quota-backend-bytes"

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
