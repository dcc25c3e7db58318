package health

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/etcdkit/etcdkit/internal/hint"
)

// LockKey is the key under which maintenance locks are held in etcd. It lies
// outside of Kubernetes' prefix.
const LockKey = "etcdkit/lock/maintenance"

// ErrLocked means that somebody else maintains the cluster.
var ErrLocked = errors.New("another maintenance holds the lock")

// ErrNoLease means that etcd grants no lease, so that no lock can be held in
// it: the quota is used up, or CORRUPT is armed.
var ErrNoLease = errors.New("etcd grants no lease")

// Lock is a lock that is held.
type Lock interface {
	// Lost is closed when the lock is no longer held.
	Lost() <-chan struct{}
	// Release gives the lock back. It works though ctx has ended.
	Release(ctx context.Context) error
}

// releaseTimeout bounds giving a lock back; afterwards its lease runs out.
const releaseTimeout = 10 * time.Second

// etcdLock is a lock in etcd with a lease of its own.
type etcdLock struct {
	session *concurrency.Session
	mutex   *concurrency.Mutex
}

// AcquireLock takes the maintenance lock in etcd. The lease outlives the
// longest pause expected, for while a member defragments its lease renewals
// may wait.
func AcquireLock(ctx context.Context, client *clientv3.Client, ttl time.Duration) (Lock, error) {
	grant, err := within(ctx, func(ctx context.Context) (*clientv3.LeaseGrantResponse, error) {
		return client.Grant(ctx, int64(ttl.Seconds()))
	})
	switch {
	case noWrites(err):
		return nil, fmt.Errorf("take lock: %w: %w", ErrNoLease, err)
	case err != nil:
		return nil, fmt.Errorf("take lock: %w", err)
	}
	// The lock must survive a signal until the step that is running ends.
	held := context.WithoutCancel(ctx)
	session, err := concurrency.NewSession(client, concurrency.WithLease(grant.ID), concurrency.WithContext(held))
	if err != nil {
		return nil, fmt.Errorf("take lock: %w", err)
	}
	l := &etcdLock{session, concurrency.NewMutex(session, LockKey)}
	if _, err := within(ctx, func(ctx context.Context) (any, error) { return nil, l.mutex.TryLock(ctx) }); err != nil {
		_ = l.closeSession(ctx)
		switch {
		case errors.Is(err, concurrency.ErrLocked):
			return nil, locked(ctx, client)
		case noWrites(err):
			return nil, fmt.Errorf("take lock: %w: %w", ErrNoLease, err)
		}
		return nil, fmt.Errorf("take lock: %w", err)
	}
	return l, nil
}

// noWrites reports whether an alarm keeps etcd from writing anything.
func noWrites(err error) bool { return is(err, rpctypes.ErrNoSpace) || is(err, rpctypes.ErrCorrupt) }

// within bounds one request, which has no other bound: a member without quorum
// would keep it forever.
func within[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	return ask(ctx)
}

// locked says how long the lock may still be held by a client that was killed.
func locked(ctx context.Context, client *clientv3.Client) error {
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	err := fmt.Errorf("%w, under the key %s/", ErrLocked, LockKey)
	first := append(clientv3.WithFirstCreate(), clientv3.WithPrefix())
	if resp, getErr := client.Get(ctx, LockKey+"/", first...); getErr == nil && len(resp.Kvs) > 0 {
		if ttl, ttlErr := client.TimeToLive(ctx, clientv3.LeaseID(resp.Kvs[0].Lease)); ttlErr == nil && ttl.TTL > 0 {
			return hint.With(err, "wait for it; if its client was killed, the lock ends within %d s", ttl.TTL)
		}
	}
	return err
}

func (l *etcdLock) Lost() <-chan struct{} { return l.session.Done() }

// Release revokes the lease, which removes the key.
func (l *etcdLock) Release(ctx context.Context) error {
	if err := l.closeSession(ctx); err != nil {
		return fmt.Errorf("release lock: %w", err)
	}
	return nil
}

// closeSession is Session.Close, bounded, and without the client's context. A
// member that is going down, as one that was just removed, may be the first
// that the client asks.
func (l *etcdLock) closeSession(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	l.session.Orphan()
	for {
		_, err := l.session.Client().Revoke(ctx, l.session.Lease())
		if err == nil || is(err, rpctypes.ErrLeaseNotFound) {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(releaseTimeout / 20):
		}
	}
}
