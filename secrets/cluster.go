package secrets

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/time/rate"

	"github.com/etcdkit/etcdkit/internal/kube"
)

// Client is the part of *clientv3.Client that ScanCluster uses. It only reads.
type Client interface {
	Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error)
	Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan
	RequestProgress(ctx context.Context) error
}

// ClusterOptions says what to look for in a live cluster and how to read it.
type ClusterOptions struct {
	Options
	Timeout        time.Duration // bounds each request
	StallTimeout   time.Duration // bounds the time that a watch may say nothing
	BytesPerSecond int64         // limits how fast values are read; 0 means no limit
}

const (
	firstPage = 100     // keys asked for at first
	maxPage   = 5000    // keys asked for at most
	pageBytes = 4 << 20 // what a page should have
)

// ScanCluster scans a live cluster: its live keys, and with History among the
// places what a read at an older revision returns as well. Only the objects
// that are looked at are read, in pages.
func ScanCluster(ctx context.Context, client Client, opts ClusterOptions) (*Report, error) {
	s := &clusterScan{client: client, opts: opts}
	if opts.BytesPerSecond > 0 {
		s.limit = rate.NewLimiter(rate.Limit(opts.BytesPerSecond), int(max(opts.BytesPerSecond, pageBytes)))
	}
	prefixes, err := s.prefixes(ctx)
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		s.begin(prefixes)
		err := s.run(ctx)
		if errors.Is(err, rpctypes.ErrCompacted) && try < maxTries {
			continue // the history began anew while it was read
		}
		if err != nil {
			return nil, fmt.Errorf("scan cluster: %w", err)
		}
		s.finish()
		return s.report, nil
	}
}

// clusterScan is a scan of a live cluster.
type clusterScan struct {
	client Client
	opts   ClusterOptions
	limit  *rate.Limiter

	judge  *judge
	tally  *tally
	report *Report
	latest map[string]version
}

func (s *clusterScan) begin(prefixes []string) {
	scope := newScope(prefixes, s.opts.Config)
	s.report = &Report{Summary: []Count{}, Findings: []Finding{}}
	s.judge = newJudge(s.opts.Options, scope)
	s.tally = newTally(scope, s.report)
	s.latest = make(map[string]version)
}

// look finds Kubernetes' prefixes. Known ones count where something is under
// them, or where the user may not look at everything.
func (s *clusterScan) look(ctx context.Context, kv kube.Getter) ([]string, error) {
	found, err := kube.Discover(ctx, kv)
	denied := errors.Is(err, rpctypes.ErrPermissionDenied) && len(s.opts.Known) > 0
	if err != nil && !denied {
		return nil, err
	}
	for _, prefix := range s.opts.Known {
		resp, err := kv.Get(ctx, prefix+"/", clientv3.WithPrefix(), clientv3.WithLimit(1), clientv3.WithKeysOnly())
		if err != nil && !errors.Is(err, rpctypes.ErrPermissionDenied) {
			return nil, err
		}
		if !slices.Contains(found, prefix) && (err != nil || len(resp.Kvs) > 0) {
			found = append(found, prefix)
		}
	}
	return found, nil
}

// prefixes finds Kubernetes' prefixes, or checks those that were given.
func (s *clusterScan) prefixes(ctx context.Context) ([]string, error) {
	kv := getter{s}
	if s.opts.Prefixes == nil {
		found, err := s.look(ctx, kv)
		if err == nil && len(found) == 0 {
			err = ErrNotKubernetes
		}
		if err != nil {
			return nil, fmt.Errorf("scan cluster: %w", err)
		}
		return found, nil
	}
	for _, prefix := range s.opts.Prefixes {
		resp, err := kv.Get(ctx, prefix+"/", clientv3.WithPrefix(), clientv3.WithLimit(1), clientv3.WithKeysOnly())
		switch {
		case errors.Is(err, rpctypes.ErrPermissionDenied): // perhaps not to what is looked at
		case err != nil:
			return nil, fmt.Errorf("scan cluster: %w", err)
		case len(resp.Kvs) == 0:
			return nil, fmt.Errorf("scan cluster: %w under %s", ErrNotKubernetes, prefix)
		}
	}
	return s.opts.Prefixes, nil
}

// getter bounds each request.
type getter struct{ *clusterScan }

// Get implements kube.Getter.
func (g getter) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if g.opts.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, g.opts.Timeout)
		defer cancel()
	}
	return g.client.Get(ctx, key, opts...)
}

func (s *clusterScan) history() bool { return slices.Contains(s.opts.Places, History) }

func (s *clusterScan) run(ctx context.Context) error {
	first := string(s.judge.scope.dirs[0])
	resp, err := getter{s}.Get(ctx, first, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return err
	}
	s.report.Revision = resp.Header.Revision
	for _, dir := range s.judge.scope.dirs {
		if s.history() {
			err = s.readHistory(ctx, string(dir))
		} else {
			err = s.readAt(ctx, string(dir), s.report.Revision, true)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readAt reads everything below dir as it was at a revision. With moveOn it
// goes on at a newer one when the revision is compacted meanwhile.
func (s *clusterScan) readAt(ctx context.Context, dir string, revision int64, moveOn bool) error {
	from, end, limit := dir, clientv3.GetPrefixRangeEnd(dir), int64(firstPage)
	for {
		resp, err := getter{s}.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(limit), clientv3.WithRev(revision))
		if moveOn && errors.Is(err, rpctypes.ErrCompacted) {
			revision = 0
			continue
		}
		if err != nil {
			return err
		}
		if revision == 0 {
			revision = resp.Header.Revision
			s.report.Revision = revision
		}
		size := 0
		for _, kv := range resp.Kvs {
			size += len(kv.Key) + len(kv.Value)
			s.put(ctx, kv)
		}
		if !resp.More || len(resp.Kvs) == 0 {
			return s.wait(ctx, size)
		}
		from = string(resp.Kvs[len(resp.Kvs)-1].Key) + "\x00"
		limit = max(1, min(maxPage, 2*limit, int64(len(resp.Kvs))*pageBytes/int64(max(size, 1))))
		if err := s.wait(ctx, size); err != nil {
			return err
		}
	}
}

// wait keeps to the rate limit.
func (s *clusterScan) wait(ctx context.Context, bytes int) error {
	if s.limit == nil {
		return nil
	}
	return s.limit.WaitN(ctx, min(bytes, s.limit.Burst()))
}

// put takes over a stored version; what the key had before is history.
func (s *clusterScan) put(ctx context.Context, kv *mvccpb.KeyValue) {
	k, ok := s.judge.scope.match(kv.Key)
	if !ok {
		return
	}
	v := s.judge.value(ctx, k, kv.Key, kv.Value, true)
	v.create, v.mod = kv.CreateRevision, kv.ModRevision
	before, known := s.latest[v.etcdKey]
	if known && before.mod != v.mod {
		s.tally.add(History, before)
	}
	s.latest[v.etcdKey] = v
}

func (s *clusterScan) remove(key []byte) {
	if before, ok := s.latest[string(key)]; ok {
		s.tally.add(History, before)
		delete(s.latest, string(key))
	}
}

// finish makes the report.
func (s *clusterScan) finish() {
	if s.opts.wants(Live) {
		s.tally.live(s.latest)
		s.tally.place(Live, true, 0, "")
	}
	if s.history() {
		s.tally.place(History, true, 0, "")
	}
	s.tally.finish(s.opts.Config)
}
