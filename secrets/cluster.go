package secrets

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/time/rate"

	"github.com/etcdkit/etcdkit/internal/etcd"
	"github.com/etcdkit/etcdkit/internal/kube"
	"github.com/etcdkit/etcdkit/internal/mvccdb"
)

// ClusterOptions says what to look for in a live cluster and how to read it.
type ClusterOptions struct {
	Options
	Timeout        time.Duration // bounds each request
	StallTimeout   time.Duration // bounds the time that a watch may say nothing
	BytesPerSecond int64         // limits how fast values are read; 0 means no limit
}

// burst is how many bytes may come at once under a rate limit.
const burst = 4 << 20

// ScanCluster scans a live cluster: its live keys, and with History among the
// places what a read at an older revision returns as well. Only the objects
// that are looked at are read, a few at a time.
func ScanCluster(ctx context.Context, client *clientv3.Client, opts ClusterOptions) (*Report, error) {
	s := &clusterScan{client: client, opts: opts}
	if opts.BytesPerSecond > 0 {
		s.limit = rate.NewLimiter(rate.Limit(opts.BytesPerSecond), int(max(opts.BytesPerSecond, burst)))
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
	client *clientv3.Client
	opts   ClusterOptions
	limit  *rate.Limiter

	judge  *judge
	tally  *tally
	report *Report
	live   *mvccdb.Keys // revision of each key's live version, its low half: enough to tell versions apart
}

func (s *clusterScan) begin(prefixes []string) {
	scope := newScope(prefixes, s.opts.Options)
	s.judge = newJudge(s.opts.Options, scope)
	s.tally = newTally(scope, s.opts.Options)
	s.report = s.tally.report
	s.live = mvccdb.NewKeys()
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
		holds, err := holdsObjects(ctx, kv, prefix)
		switch {
		case err != nil:
			return nil, fmt.Errorf("scan cluster: %w", err)
		case !holds:
			return nil, fmt.Errorf("scan cluster: %w under %s", ErrNotKubernetes, prefix)
		}
	}
	return s.opts.Prefixes, nil
}

// holdsObjects reports whether an object of a built-in resource is under prefix,
// which is what a file is asked, too: a key alone may be that of an object whose
// resource the prefix names. What may not be read may hold some.
func holdsObjects(ctx context.Context, kv kube.Getter, prefix string) (bool, error) {
	const few = 8 // keys, one of which is an API server's where the others are not
	_, enough := kube.Telltales(prefix)
	denied := false
	for _, dir := range objectDirs(prefix) {
		resp, err := kv.Get(ctx, dir, clientv3.WithPrefix(), clientv3.WithLimit(few), clientv3.WithKeysOnly())
		if errors.Is(err, rpctypes.ErrPermissionDenied) {
			denied = true
			continue
		}
		if err != nil {
			return false, err
		}
		for _, found := range resp.Kvs {
			if enough == 1 || kube.IsBuiltInObject(prefix, found.Key) {
				return true, nil
			}
		}
	}
	return denied, nil
}

// objectDirs returns where objects are under prefix, Secrets first.
func objectDirs(prefix string) []string {
	dirs := kube.StoragePrefixes(prefix, secretsResource())
	kinds, _ := kube.Telltales(prefix)
	for _, kind := range kinds {
		dirs = append(dirs, prefix+"/"+kind+"/")
	}
	for _, r := range kube.BuiltIns() {
		if dir := prefix + "/" + r.Path + "/"; !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
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
		if err := s.readLive(ctx, string(dir)); err != nil {
			return err
		}
		if !s.history() {
			continue
		}
		if err := s.readHistory(ctx, string(dir)); err != nil {
			return err
		}
	}
	return nil
}

// readLive reads what is below dir now. Without the history it goes on at a
// newer revision when its own is compacted meanwhile.
func (s *clusterScan) readLive(ctx context.Context, dir string) error {
	req := &pb.RangeRequest{
		Key: []byte(dir), RangeEnd: []byte(clientv3.GetPrefixRangeEnd(dir)),
		Revision: s.report.Revision, KeysOnly: !s.opts.wants(Live),
	}
	for tries := 1; ; tries++ {
		var last []byte
		err := s.read(ctx, req, func(kv *mvccpb.KeyValue) {
			last = kv.Key
			if s.history() {
				s.live.Set(s.live.ID(kv.Key), uint32(kv.ModRevision))
			}
			if !req.KeysOnly {
				s.put(ctx, Live, kv)
			}
		})
		if last != nil {
			tries = 1 // it got further
		}
		if s.history() || !errors.Is(err, rpctypes.ErrCompacted) || tries == maxTries {
			return err
		}
		resp, err := getter{s}.Get(ctx, dir, clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			return err
		}
		s.report.Revision = resp.Header.Revision
		req.Revision = resp.Header.Revision
		if last != nil {
			req.Key = append(slices.Clip(last), 0)
		}
	}
}

// read reads a range and shows each pair.
func (s *clusterScan) read(ctx context.Context, req *pb.RangeRequest, see func(*mvccpb.KeyValue)) error {
	reader := etcd.Reader{Client: s.client, Timeout: s.opts.Timeout}
	return reader.Read(ctx, req, etcd.Sink{
		Head: func(*pb.RangeResponse) error { return nil },
		Pairs: func(kvs []*mvccpb.KeyValue) error {
			size := 0
			for _, kv := range kvs {
				size += len(kv.Key) + len(kv.Value)
				see(kv)
			}
			return s.wait(ctx, size)
		},
	})
}

// wait keeps to the rate limit.
func (s *clusterScan) wait(ctx context.Context, bytes int) error {
	if s.limit == nil {
		return nil
	}
	return s.limit.WaitN(ctx, min(bytes, s.limit.Burst()))
}

// put takes over a stored version.
func (s *clusterScan) put(ctx context.Context, place Place, kv *mvccpb.KeyValue) {
	if k, ok := s.judge.scope.match(kv.Key); ok {
		at := stamp{create: kv.CreateRevision, mod: kv.ModRevision}
		if v, told := s.judge.value(ctx, k, stored{etcdKey: kv.Key, value: kv.Value, complete: true, opened: true, stamp: at}); told {
			s.tally.add(place, v)
		}
	}
}

// older takes over a version that a read at an older revision returned, or a
// watch, unless it is the live one.
func (s *clusterScan) older(ctx context.Context, kv *mvccpb.KeyValue) {
	if mod, known := s.live.Get(s.live.ID(kv.Key)); !known || mod != uint32(kv.ModRevision) {
		s.put(ctx, History, kv)
	}
}

// finish makes the report.
func (s *clusterScan) finish() {
	if s.opts.wants(Live) {
		s.tally.place(Live, true, 0, "")
	}
	if s.history() {
		s.tally.place(History, true, 0, "")
	}
	s.tally.finish(s.opts.Config)
}
