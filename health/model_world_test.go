package health

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/raft/v3/confchange"
	"go.etcd.io/raft/v3/quorum"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
	"google.golang.org/protobuf/proto"
)

// world is a cluster as it really is, which the code under test sees only
// through its endpoints. Who has quorum is decided by raft's own packages.
type world struct {
	*rand.Rand
	mu      sync.Mutex
	id      uint64
	members []*fakeServer // of the member list
	others  []*fakeServer // processes of another cluster
	urls    map[string][]*fakeServer
	keys    map[string]string
	built   *tracker.Config // of the present members
	commit  uint64
	history bool // a compaction was asked for

	changes int      // requests that changed something
	harm    []string // what cost quorum, or was for nothing
}

// fakeServer is a member's process.
type fakeServer struct {
	w        *world
	cluster  uint64
	m        *pb.Member
	dead     bool // refuses connections
	stopped  bool // takes connections and never answers
	cut      bool // cut off from its peers
	stale    bool // and still names the old leader
	norights bool // refuses to show what it read
	lags     bool // a learner that needs more time
	applied  uint64
	size     int64
	quota    int64
	alarms   []pb.AlarmType
}

func (s *fakeServer) connected() bool { return !s.dead && !s.stopped && !s.cut }

// config is the cluster's configuration as raft builds it.
func (w *world) config() tracker.Config {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.built != nil {
		return *w.built
	}
	cs := &raftpb.ConfState{}
	for _, s := range w.members {
		if s.m.IsLearner {
			cs.Learners = append(cs.Learners, s.m.ID)
		} else {
			cs.Voters = append(cs.Voters, s.m.ID)
		}
	}
	cfg, _, err := confchange.Restore(confchange.Changer{Tracker: tracker.MakeProgressTracker(1, 0), LastIndex: 1}, cs)
	if err != nil {
		panic(err)
	}
	w.built = &cfg
	return cfg
}

// serves asks raft whether the connected voters, but for some, have a quorum.
func (w *world) serves(cfg tracker.Config, without ...uint64) bool {
	votes := map[uint64]bool{}
	for _, s := range w.members {
		votes[s.m.ID] = s.connected() && !slices.Contains(without, s.m.ID)
	}
	return cfg.Voters.VoteResult(votes) == quorum.VoteWon
}

// change is the configuration after a change, as raft applies it.
func (w *world) change(kind raftpb.ConfChangeType, id uint64) (tracker.Config, error) {
	cfg := w.config()
	progress := tracker.MakeProgressTracker(1, 0)
	progress.Config = cfg
	for _, s := range w.members {
		progress.Progress[s.m.ID] = &tracker.Progress{IsLearner: s.m.IsLearner, Inflights: tracker.NewInflights(1, 0), Next: 2, Match: 1}
	}
	cc := &raftpb.ConfChangeSingle{Type: kind.Enum(), NodeId: proto.Uint64(id)}
	after, _, err := confchange.Changer{Tracker: progress, LastIndex: 1}.Simple(cc)
	return after, err
}

func (w *world) leader() uint64 {
	if !w.serves(w.config()) {
		return 0
	}
	for _, s := range w.members {
		if s.connected() && !s.m.IsLearner {
			return s.m.ID
		}
	}
	return 0
}

// canLose is how many living voters may fail at worst, counted out.
func (w *world) canLose() int {
	var living []uint64
	for _, s := range w.members {
		if s.connected() && !s.m.IsLearner {
			living = append(living, s.m.ID)
		}
	}
	cfg := w.config()
	for n := range len(living) + 1 {
		if !w.serves(cfg, living[:n]...) {
			return max(0, n-1)
		}
	}
	return len(living)
}

// alive reports whether the member takes part in the cluster in truth.
func (w *world) alive(id uint64) bool {
	s := w.server(id)
	return s != nil && s.connected() && !s.lags && w.serves(w.config())
}

func (w *world) server(id uint64) *fakeServer {
	i := slices.IndexFunc(w.members, func(s *fakeServer) bool { return s.m.ID == id })
	if i < 0 {
		return nil
	}
	return w.members[i]
}

func (w *world) hurt(format string, args ...any) {
	w.harm = append(w.harm, fmt.Sprintf(format, args...))
}

// dial reaches one of the processes behind a URL.
func (w *world) dial(url string) *fakeClient {
	behind := w.urls[bare(url)]
	if len(behind) == 0 {
		return &fakeClient{}
	}
	return &fakeClient{w: w, s: w.pick(behind), behind: behind}
}

// pick is the balancer's choice.
func (w *world) pick(from []*fakeServer) *fakeServer {
	w.mu.Lock()
	defer w.mu.Unlock()
	return from[w.IntN(len(from))]
}

func (w *world) tools() Tools {
	return Tools{
		Doors:   Doors{Dial: func(_ context.Context, url string) (Client, error) { return w.dial(url), nil }},
		Operate: func(_ context.Context, url string) (Operator, error) { return w.dial(url), nil },
		Lock: func(context.Context, time.Duration) (Lock, error) {
			return freeLock{}, nil
		},
	}
}

type freeLock struct{}

func (freeLock) Lost() <-chan struct{}         { return nil }
func (freeLock) Release(context.Context) error { return nil }

// fakeClient is a connection to one URL. With several processes behind it,
// every request may reach another.
type fakeClient struct {
	w      *world
	s      *fakeServer
	behind []*fakeServer
}

var errNoConnection = errors.New("connection refused")

// reach is where each request begins.
func (c *fakeClient) reach(ctx context.Context) error {
	if c.s == nil {
		return errNoConnection
	}
	if len(c.behind) > 1 {
		c.s = c.w.pick(c.behind)
	}
	switch {
	case c.s.dead:
		return errNoConnection
	case c.s.stopped:
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

// agree is what needs a quorum.
func (c *fakeClient) agree(ctx context.Context) error {
	if err := c.reach(ctx); err != nil {
		return err
	}
	if c.s.m.IsLearner {
		return rpctypes.ErrGRPCNotSupportedForLearner
	}
	if c.s.cluster == c.w.id && c.s.connected() && c.w.serves(c.w.config()) {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (c *fakeClient) header() *pb.ResponseHeader {
	return &pb.ResponseHeader{ClusterId: c.s.cluster, MemberId: c.s.m.ID, Revision: int64(c.w.commit)}
}

func (c *fakeClient) Close() error { return nil }

func (c *fakeClient) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if err := c.agree(ctx); err != nil {
		return nil, err
	}
	if c.s.norights && key == probeKey {
		return nil, rpctypes.ErrPermissionDenied
	}
	resp := &clientv3.GetResponse{Header: c.header()}
	op := clientv3.OpGet(key, opts...)
	for k, v := range c.w.keys {
		if k == key || len(op.RangeBytes()) > 0 && k >= key && k < string(op.RangeBytes()) {
			resp.Kvs = append(resp.Kvs, &mvccpb.KeyValue{Key: []byte(k), Value: []byte(v)})
			resp.Count++
		}
	}
	return resp, nil
}

func (c *fakeClient) MemberList(ctx context.Context, opts ...clientv3.OpOption) (*clientv3.MemberListResponse, error) {
	ask := c.agree
	if op := clientv3.OpGet("", opts...); op.IsSerializable() {
		ask = c.reach
	}
	if err := ask(ctx); err != nil {
		return nil, err
	}
	if c.s.m.IsLearner {
		return nil, rpctypes.ErrGRPCNotSupportedForLearner
	}
	resp := &clientv3.MemberListResponse{Header: c.header()}
	list := c.w.members
	if c.s.cluster != c.w.id {
		list = c.w.others
	}
	for _, s := range list {
		resp.Members = append(resp.Members, s.m)
	}
	return resp, nil
}

func (c *fakeClient) Status(ctx context.Context, _ string) (*clientv3.StatusResponse, error) {
	if err := c.reach(ctx); err != nil {
		return nil, err
	}
	resp := &clientv3.StatusResponse{
		Header: c.header(), Version: "3.7.3", RaftTerm: 2, RaftIndex: c.w.commit, RaftAppliedIndex: c.w.commit, IsLearner: c.s.m.IsLearner,
		DbSize: c.s.size, DbSizeInUse: c.s.size / 4, DbSizeQuota: c.s.quota,
	}
	switch {
	case c.s.cluster != c.w.id:
		resp.Leader = c.s.m.ID
	case c.s.cut:
		resp.RaftIndex, resp.RaftAppliedIndex = c.s.applied, c.s.applied
		if c.s.stale || c.s.m.IsLearner { // a learner never campaigns, and keeps its leader
			resp.Leader = c.w.members[0].m.ID
		}
	default:
		resp.Leader = c.w.leader()
		if c.s.lags {
			resp.RaftAppliedIndex = 1
		}
	}
	for _, s := range c.w.members {
		for _, a := range s.alarms {
			resp.Errors = append(resp.Errors, (&pb.AlarmMember{MemberID: s.m.ID, Alarm: a}).String())
		}
	}
	return resp, nil
}

func (c *fakeClient) HashKV(context.Context, string, int64) (*clientv3.HashKVResponse, error) {
	return nil, errors.New("not modelled")
}

func (c *fakeClient) AlarmList(ctx context.Context) (*clientv3.AlarmResponse, error) {
	if err := c.agree(ctx); err != nil {
		return nil, err
	}
	c.w.commit++
	return &clientv3.AlarmResponse{Header: c.header()}, nil
}

// write is a request that changes something.
func (c *fakeClient) write(ctx context.Context) error {
	err := c.agree(ctx)
	if err == nil {
		c.w.changes++
		c.w.commit++
	}
	return err
}

func (c *fakeClient) Put(ctx context.Context, key, value string, _ ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	if err := c.write(ctx); err != nil {
		return nil, err
	}
	c.w.keys[key] = value
	return &clientv3.PutResponse{Header: c.header()}, nil
}

func (c *fakeClient) Delete(ctx context.Context, key string, _ ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	if err := c.write(ctx); err != nil {
		return nil, err
	}
	delete(c.w.keys, key)
	return &clientv3.DeleteResponse{Header: c.header()}, nil
}

func (c *fakeClient) Grant(ctx context.Context, _ int64) (*clientv3.LeaseGrantResponse, error) {
	return &clientv3.LeaseGrantResponse{ID: 1}, c.write(ctx)
}

func (c *fakeClient) Revoke(ctx context.Context, _ clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	return &clientv3.LeaseRevokeResponse{}, c.write(ctx)
}

func (c *fakeClient) Compact(ctx context.Context, _ int64, _ ...clientv3.CompactOption) (*clientv3.CompactResponse, error) {
	c.w.history = true
	return &clientv3.CompactResponse{}, c.write(ctx)
}

func (c *fakeClient) AlarmDisarm(ctx context.Context, m *clientv3.AlarmMember) (*clientv3.AlarmResponse, error) {
	if err := c.write(ctx); err != nil {
		return nil, err
	}
	if s := c.w.server(m.MemberID); s != nil {
		s.alarms = slices.DeleteFunc(s.alarms, func(a pb.AlarmType) bool { return a == m.Alarm })
	}
	return &clientv3.AlarmResponse{}, nil
}

func (c *fakeClient) MoveLeader(ctx context.Context, id uint64) (*clientv3.MoveLeaderResponse, error) {
	if err := c.write(ctx); err != nil {
		return nil, err
	}
	to := c.w.server(id)
	if to == nil || to.m.IsLearner || !c.w.alive(id) {
		c.w.hurt("leadership was offered to %x, which cannot lead", id)
		return nil, rpctypes.ErrBadLeaderTransferee
	}
	i := slices.Index(c.w.members, to) // the first that is alive leads
	c.w.members[0], c.w.members[i] = c.w.members[i], c.w.members[0]
	return &clientv3.MoveLeaderResponse{}, nil
}

// Defragment keeps the member busy for its time.
func (c *fakeClient) Defragment(ctx context.Context, _ string) (*clientv3.DefragmentResponse, error) {
	if err := c.reach(ctx); err != nil {
		return nil, err
	}
	c.w.changes++
	cfg := c.w.config()
	healthy := !slices.ContainsFunc(c.w.members, func(s *fakeServer) bool { return !s.m.IsLearner && !s.connected() })
	if !healthy && c.w.serves(cfg) && !c.w.serves(cfg, c.s.m.ID) {
		c.w.hurt("%x was taken out of service, without which there is no quorum", c.s.m.ID)
	}
	c.s.size /= 4
	return &clientv3.DefragmentResponse{}, nil
}

// reconfigure applies a change of members, and notes when it costs the quorum.
func (c *fakeClient) reconfigure(ctx context.Context, kind raftpb.ConfChangeType, id uint64, apply func()) error {
	if err := c.write(ctx); err != nil {
		return err
	}
	after, err := c.w.change(kind, id)
	if err != nil {
		return err
	}
	apply()
	c.w.built = nil
	if !c.w.serves(after) {
		c.w.hurt("%v of %x cost the quorum", kind, id)
	}
	return nil
}

func (c *fakeClient) MemberAddAsLearner(ctx context.Context, peers []string) (*clientv3.MemberAddResponse, error) {
	var list []*membership.Member
	for _, s := range c.w.members {
		list = append(list, &membership.Member{RaftAttributes: membership.RaftAttributes{IsLearner: s.m.IsLearner}})
	}
	if err := membership.ValidateMaxLearnerConfig(membership.DefaultMaxLearners, list, true); err != nil {
		c.w.hurt("a learner too many was asked for")
		return nil, rpctypes.ErrTooManyLearners
	}
	id := uint64(0xabc)
	s := &fakeServer{w: c.w, cluster: c.w.id, m: &pb.Member{ID: id, PeerURLs: peers, IsLearner: true}, dead: true, quota: 1 << 30, size: 1}
	err := c.reconfigure(ctx, raftpb.ConfChangeAddLearnerNode, id, func() { c.w.members = append(c.w.members, s) })
	return &clientv3.MemberAddResponse{Header: &pb.ResponseHeader{}, Member: s.m}, err
}

func (c *fakeClient) MemberRemove(ctx context.Context, id uint64) (*clientv3.MemberRemoveResponse, error) {
	err := c.reconfigure(ctx, raftpb.ConfChangeRemoveNode, id, func() {
		s := c.w.server(id)
		c.w.members = slices.DeleteFunc(c.w.members, func(o *fakeServer) bool { return o == s })
		s.dead = true // it ends itself
	})
	return &clientv3.MemberRemoveResponse{}, err
}

func (c *fakeClient) MemberPromote(ctx context.Context, id uint64) (*clientv3.MemberPromoteResponse, error) {
	s := c.w.server(id)
	if s != nil && s.lags {
		return nil, rpctypes.ErrMemberLearnerNotReady
	}
	err := c.reconfigure(ctx, raftpb.ConfChangeAddNode, id, func() { s.m.IsLearner = false })
	return &clientv3.MemberPromoteResponse{}, err
}
