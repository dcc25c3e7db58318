package mirror

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// errCompacted says that the changes to follow are no longer to be had.
var errCompacted = errors.New("the revision was compacted")

// maxTxnBytes keeps a transaction below the size that servers accept.
const maxTxnBytes = 1 << 20

// follow applies the source's changes from the checkpoint on. A watch that the
// source ends, for want of a leader for instance, is begun again.
func (m *Mirror) follow(ctx context.Context) error {
	for {
		if err := m.followOnce(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// followOnce follows until the watch ends. It returns nil if it can be begun
// again.
func (m *Mirror) followOnce(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := m.From.Watch(clientv3.WithRequireLeader(ctx), m.Prefix,
		clientv3.WithPrefix(), clientv3.WithRev(m.check.Revision+1), clientv3.WithProgressNotify())
	for resp := range changes {
		switch {
		case resp.CompactRevision > 0:
			return errCompacted
		case resp.Canceled && !canRetry(resp.Err()):
			return fmt.Errorf("source: %w", resp.Err())
		case resp.Canceled:
			m.Note("the source ended the watch, beginning it again: %v", resp.Err())
			return nil
		}
		if err := m.apply(ctx, resp); err != nil {
			return err
		}
	}
	return nil
}

// apply makes the changes of one response, a transaction for each revision.
func (m *Mirror) apply(ctx context.Context, resp clientv3.WatchResponse) error {
	b := m.batch()
	rev := int64(0)
	for _, e := range resp.Events {
		if rev != 0 && e.Kv.ModRevision > rev {
			if err := b.flush(ctx); err != nil {
				return err
			}
			if err := m.reached(rev); err != nil {
				return err
			}
		}
		rev = e.Kv.ModRevision
		op := clientv3.OpPut(string(m.rename(e.Kv.Key)), string(e.Kv.Value))
		if e.Type == clientv3.EventTypeDelete {
			op = clientv3.OpDelete(string(m.rename(e.Kv.Key)))
		}
		if err := b.add(ctx, op); err != nil {
			return err
		}
	}
	if err := b.flush(ctx); err != nil {
		return err
	}
	if resp.IsProgressNotify() {
		rev = resp.Header.Revision
	}
	return m.reached(rev)
}

// batch collects changes for a transaction at the destination.
type batch struct {
	m     *Mirror
	ops   []clientv3.Op
	bytes int
	done  int
}

func (m *Mirror) batch() *batch { return &batch{m: m} }

func (b *batch) add(ctx context.Context, op clientv3.Op) error {
	size := len(op.KeyBytes()) + len(op.ValueBytes())
	if len(b.ops) > 0 && (len(b.ops) >= b.m.MaxTxnOps || b.bytes+size > maxTxnBytes) {
		if err := b.flush(ctx); err != nil {
			return err
		}
	}
	b.ops = append(b.ops, op)
	b.bytes += size
	return nil
}

// flush makes the changes. As long as the destination cannot be reached it is
// tried again: making a change twice does no harm.
func (b *batch) flush(ctx context.Context) error {
	if len(b.ops) == 0 {
		return nil
	}
	began, told := time.Now(), false
	for {
		err := b.commit(ctx)
		switch {
		case err == nil:
			b.done += len(b.ops)
			b.m.applied += int64(len(b.ops))
			b.ops, b.bytes = nil, 0
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !canRetry(err):
			return fmt.Errorf("destination: %w", err)
		case b.m.GiveUp > 0 && time.Since(began) > b.m.GiveUp:
			return fmt.Errorf("destination: %w (%s): %w", ErrLost, b.m.GiveUp, err)
		case !told:
			told = true
			b.m.Note("the destination does not answer, still trying: %v", err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
}

func (b *batch) commit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, b.m.Timeout)
	defer cancel()
	_, err := b.m.To.Txn(ctx).Then(b.ops...).Commit()
	return err
}

// canRetry reports whether an error may pass by itself.
func canRetry(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	etcdErr, ok := errors.AsType[rpctypes.EtcdError](err)
	code := status.Code(err)
	if ok {
		code = etcdErr.Code()
	}
	switch code {
	case codes.Unavailable, codes.DeadlineExceeded:
		return true
	}
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}
