package secrets

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// progressEvery is how often a watch is asked how far it is.
const progressEvery = 100 * time.Millisecond

// errStalled says that a watch does not tell how far it is.
var errStalled = errors.New("the watch of the history stands still")

// readHistory reads every version below dir that is stored but not live: first
// what was there at the compacted revision, because compaction keeps the last
// version of each key however old it is, then every change since.
func (s *clusterScan) readHistory(ctx context.Context, dir string) error {
	compacted, err := s.compacted(ctx, dir)
	if err != nil {
		return err
	}
	if compacted > 0 {
		req := &pb.RangeRequest{Key: []byte(dir), RangeEnd: []byte(clientv3.GetPrefixRangeEnd(dir)), Revision: compacted}
		if err := s.read(ctx, req, func(kv *mvccpb.KeyValue) { s.older(ctx, kv) }); err != nil {
			return err
		}
	}
	return s.watch(ctx, dir, compacted+1, s.report.Revision)
}

// compacted asks for the compacted revision, 0 if there is none. Watching from
// the first revision is the request that answers with it.
func (s *clusterScan) compacted(ctx context.Context, dir string) (int64, error) {
	revision := int64(0)
	err := s.follow(ctx, dir, 1, func(resp clientv3.WatchResponse) (bool, error) {
		if resp.CompactRevision > 0 {
			revision = resp.CompactRevision
			return true, nil
		}
		return len(resp.Events) > 0 || resp.Header.GetRevision() > 0 && resp.IsProgressNotify(), resp.Err()
	})
	return revision, err
}

// watch takes over every change below dir from a revision on until another.
func (s *clusterScan) watch(ctx context.Context, dir string, from, until int64) error {
	if from > until {
		return nil
	}
	return s.follow(ctx, dir, from, func(resp clientv3.WatchResponse) (bool, error) {
		if err := resp.Err(); err != nil {
			return true, err
		}
		size := 0
		for _, e := range resp.Events {
			if e.Kv.ModRevision > until {
				return true, nil
			}
			size += len(e.Kv.Key) + len(e.Kv.Value)
			if e.Type == mvccpb.Event_PUT {
				s.older(ctx, e.Kv)
			}
		}
		return resp.IsProgressNotify() && resp.Header.GetRevision() >= until, s.wait(ctx, size)
	})
}

// follow watches dir from a revision on until see says that it is done. It
// keeps asking how far the watch is, and gives up when nothing is heard for
// the timeout.
func (s *clusterScan) follow(ctx context.Context, dir string, from int64, see func(clientv3.WatchResponse) (done bool, err error)) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	responses := s.client.Watch(ctx, dir, clientv3.WithPrefix(), clientv3.WithRev(from), clientv3.WithProgressNotify(), clientv3.WithFragment())
	ask := time.NewTicker(progressEvery)
	defer ask.Stop()
	heard := time.Now()
	for {
		select {
		case resp, ok := <-responses:
			if !ok {
				return errors.Join(context.Cause(ctx), errStalled)
			}
			heard = time.Now()
			if done, err := see(resp); done || err != nil {
				return err
			}
		case <-ask.C:
			if s.opts.StallTimeout > 0 && time.Since(heard) > s.opts.StallTimeout {
				return fmt.Errorf("%w: nothing for %v", errStalled, s.opts.StallTimeout)
			}
			if err := s.client.RequestProgress(ctx); err != nil {
				return fmt.Errorf("ask the watch how far it is: %w", err)
			}
		}
	}
}
