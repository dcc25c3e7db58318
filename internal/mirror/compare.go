package mirror

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/etcd"
)

// errEnough stops a read that nobody wants more of.
var errEnough = errors.New("enough was read")

// stream is the pairs under a prefix, in order, at one revision.
type stream struct {
	rev  int64
	err  error
	next func() (*mvccpb.KeyValue, bool)
	stop func()
}

// open begins to read the pairs under prefix.
func (m *Mirror) open(ctx context.Context, client *clientv3.Client, prefix string) *stream {
	s := &stream{}
	from, end := []byte(prefix), []byte(clientv3.GetPrefixRangeEnd(prefix))
	if prefix == "" {
		from, end = []byte{0}, []byte{0}
	}
	pairs := func(yield func(*mvccpb.KeyValue) bool) {
		reader := etcd.Reader{Client: client, Timeout: m.patience()}
		s.err = reader.Read(ctx, &pb.RangeRequest{Key: from, RangeEnd: end}, etcd.Sink{
			Head: func(head *pb.RangeResponse) error {
				s.rev = head.Header.Revision
				return nil
			},
			Pairs: func(kvs []*mvccpb.KeyValue) error {
				for _, kv := range kvs {
					if !yield(kv) {
						return errEnough
					}
				}
				return nil
			},
		})
	}
	s.next, s.stop = iter.Pull(iter.Seq[*mvccpb.KeyValue](pairs))
	return s
}

// compare makes the destination hold what the source holds at one revision:
// keys that are missing or differ are written. What is only there is deleted, or
// counted.
func (m *Mirror) compare(ctx context.Context) error {
	from := m.open(ctx, m.From, m.Prefix)
	defer from.stop()
	to := m.open(ctx, m.To, m.DestPrefix)
	defer to.stop()
	writes := m.batch()
	var extra [][]byte
	s, more := from.next()
	d, dMore := to.next()
	for more || dMore {
		order := -1 // a key that only the source has
		switch {
		case !more:
			order = 1
		case dMore:
			order = bytes.Compare(m.rename(s.Key), d.Key)
		}
		if order < 0 || order == 0 && !bytes.Equal(s.Value, d.Value) {
			if err := writes.add(ctx, clientv3.OpPut(string(m.rename(s.Key)), string(s.Value))); err != nil {
				return err
			}
		}
		if order > 0 {
			extra = append(extra, d.Key)
		}
		if order <= 0 {
			s, more = from.next()
		}
		if order >= 0 {
			d, dMore = to.next()
		}
	}
	if err := errors.Join(m.told("source", from.err), m.told("destination", to.err)); err != nil {
		return err
	}
	if err := writes.flush(ctx); err != nil {
		return err
	}
	if err := m.dropExtra(ctx, extra); err != nil {
		return err
	}
	m.Note("the destination holds all of revision %d, %d keys were written", from.rev, writes.done)
	return m.reached(from.rev)
}

// patience is how long a read may hear nothing; 0 means for ever.
func (m *Mirror) patience() time.Duration {
	if m.GiveUp == 0 {
		return 0
	}
	return max(m.Timeout, m.GiveUp)
}

// told says which cluster could not be read, and whether it was given up.
func (m *Mirror) told(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w (%s): %w", what, ErrLost, m.patience(), err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

func (m *Mirror) dropExtra(ctx context.Context, extra [][]byte) error {
	switch {
	case len(extra) == 0:
		return nil
	case !m.DeleteExtra:
		m.Note("%d keys at the destination are not in the source; --delete-extra deletes them", len(extra))
		return nil
	}
	if err := m.ConfirmDelete(len(extra)); err != nil {
		return err
	}
	deletes := m.batch()
	for _, key := range extra {
		if err := deletes.add(ctx, clientv3.OpDelete(string(key))); err != nil {
			return err
		}
	}
	if err := deletes.flush(ctx); err != nil {
		return err
	}
	m.Note("%d keys that are not in the source were deleted", len(extra))
	return nil
}

// rename turns a key of the source into the destination's.
func (m *Mirror) rename(key []byte) []byte {
	return append([]byte(m.DestPrefix), key[len(m.Prefix):]...)
}
