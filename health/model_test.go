package health

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/raft/v3/raftpb"
)

// newWorld makes up a cluster and what is wrong with it.
func newWorld(seed uint64) (w *world, endpoints []string) {
	r := rand.New(rand.NewPCG(seed, 12))
	w = &world{Rand: r, id: 0xc1, urls: map[string][]*fakeServer{}, keys: map[string]string{}, commit: 100 + r.Uint64N(100)}
	voters, learners := []int{1, 2, 3, 3, 3, 4, 5, 5, 7}[r.IntN(9)], []int{0, 0, 0, 1, 1, 2}[r.IntN(6)]
	trouble := r.Float64()
	for i := range voters + learners {
		w.members = append(w.members, w.newServer(i, i >= voters, trouble))
	}
	w.layout()
	for _, s := range w.members {
		if own := fmt.Sprintf("http://tunnel-%x", s.m.ID); r.IntN(3) == 0 {
			w.urls[bare(own)] = []*fakeServer{s}
			endpoints = append(endpoints, own)
		}
		if len(s.m.ClientURLs) > 0 && r.IntN(2) == 0 {
			endpoints = append(endpoints, s.m.ClientURLs[r.IntN(len(s.m.ClientURLs))])
		}
	}
	if r.IntN(6) == 0 { // behind a load balancer
		w.urls["balancer"] = slices.Clone(w.members)
		endpoints = append(endpoints, "http://balancer")
	}
	if r.IntN(30) == 0 {
		other := &fakeServer{w: w, cluster: 0xc2, m: &pb.Member{ID: 0x99, Name: "other", ClientURLs: []string{"http://other"}}, quota: 1 << 30, size: 1}
		w.others = []*fakeServer{other}
		w.urls["other"] = w.others
		endpoints = append(endpoints, "http://other")
	}
	if len(endpoints) == 0 {
		endpoints = []string{"http://m1:2379"}
	}
	r.Shuffle(len(endpoints), func(i, j int) { endpoints[i], endpoints[j] = endpoints[j], endpoints[i] })
	return w, endpoints
}

func (w *world) newServer(i int, learner bool, trouble float64) *fakeServer {
	s := &fakeServer{
		w: w, cluster: w.id, applied: w.commit, size: 100 << 20, quota: 1 << 30,
		m: &pb.Member{
			ID: uint64(i + 1), Name: fmt.Sprint("m", i+1), IsLearner: learner,
			PeerURLs: []string{fmt.Sprintf("http://m%d:2380", i+1)}, ClientURLs: []string{fmt.Sprintf("http://m%d:2379", i+1)},
		},
	}
	if w.Float64() < trouble {
		switch w.IntN(6) {
		case 0, 1:
			s.dead = true
		case 2:
			s.stopped = true
		case 3:
			s.cut, s.stale = true, w.IntN(2) == 0
		case 4:
			s.norights = true
		case 5:
			s.lags = learner
		}
	}
	if w.Float64() < trouble/4 {
		s.alarms = append(s.alarms, pb.AlarmType_NOSPACE)
		s.size = s.quota - int64(w.IntN(2))*(s.quota/2)
		if w.IntN(6) == 0 {
			s.quota = 0
		}
	}
	if w.IntN(60) == 0 {
		s.alarms = append(s.alarms, pb.AlarmType_CORRUPT)
	}
	if learner && w.IntN(4) == 0 { // never started
		s.m.Name, s.m.ClientURLs, s.dead = "", nil, true
	}
	return s
}

// layout decides who advertises what, and who can be reached where.
func (w *world) layout() {
	shape := w.IntN(10)
	for _, s := range w.members {
		if len(s.m.ClientURLs) == 0 {
			continue
		}
		own := s.m.ClientURLs[0]
		if w.IntN(12) > 0 { // else it cannot be reached from here
			w.urls[bare(own)] = []*fakeServer{s}
		}
		switch shape {
		case 0: // copied from each other
			s.m.ClientURLs = []string{w.members[0].m.GetClientURLs()[0]}
		case 1: // a service beside their own
			s.m.ClientURLs = []string{"http://service", own}
			w.urls["service"] = append(w.urls["service"], s)
		case 2: // a service alone
			s.m.ClientURLs = []string{"http://service"}
			w.urls["service"] = append(w.urls["service"], s)
		case 3:
			s.m.Name = w.members[0].m.Name
		}
	}
}

const (
	modelClusters     = 10_000
	modelCommands     = 4 // of which one is run on some of the clusters
	modelCommandEvery = 10
)

// No verdict is better than the truth, no guard that lets a change pass costs
// the quorum, and no command does harm or refuses after its first change, on
// clusters in which anything may be wrong. What is true is decided by raft's
// own packages.
func TestModelOfBrokenClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := map[string]int{}
		for seed := range uint64(modelClusters) {
			w, endpoints := newWorld(seed)
			facts, err := Gather(t.Context(), w.tools().Doors, endpoints, Options{Reads: 1})
			may, must := w.mixed(endpoints)
			if errors.Is(err, ErrTwoClusters) && !may || err != nil && !errors.Is(err, ErrTwoClusters) || err == nil && must {
				t.Fatalf("seed %d: %v with the endpoints %v", seed, err, endpoints)
			}
			if err == nil && facts.Cluster.ID != 0xc2 { // else only the other one answered
				w.checkSight(seen, facts)
				w.checkGuards(seen, facts)
			}
			if seed%modelCommandEvery == 0 {
				w.checkCommand(t.Context(), seen, endpoints)
			}
			if len(w.harm) > 0 {
				t.Fatalf("seed %d, endpoints %v: %s\n%s", seed, endpoints, strings.Join(w.harm, "\n"), w)
			}
		}
		for _, must := range []string{
			"healthy", "degraded", "unhealthy", "unknown", "remove", "remove refused", "promote", "promote refused", "add", "add refused",
			"defrag ok", "defrag refused", "recover ok", "recover refused", "replace ok", "replace refused", "promote --wait ok", "promote --wait refused", "two clusters",
		} {
			if seen[must] == 0 {
				t.Errorf("%q was never seen among %d clusters: %v", must, modelClusters, seen)
			}
		}
		t.Log(seen)
	})
}

// mixed reports whether endpoints of both clusters may answer, and whether they
// must.
func (w *world) mixed(endpoints []string) (may, must bool) {
	for _, ep := range endpoints {
		behind := w.urls[bare(ep)]
		answers := func(s *fakeServer) bool { return s.cluster == w.id && !s.dead && !s.stopped }
		may = may || len(w.others) > 0 && slices.ContainsFunc(behind, answers)
		must = must || len(w.others) > 0 && len(behind) == 1 && answers(behind[0])
	}
	return may, must
}

func (w *world) String() string {
	var b strings.Builder
	for _, s := range w.members {
		fmt.Fprintf(&b, "%+v %+v\n", s.m, *s)
	}
	return b.String()
}

// checkSight compares what was seen with the truth.
func (w *world) checkSight(seen map[string]int, facts Facts) {
	report := Judge(facts, Options{})
	seen[string(report.Verdict)]++
	cfg := w.config()
	if facts.Cluster.CanLose > w.canLose() {
		w.hurt("can lose %d, in truth %d", facts.Cluster.CanLose, w.canLose())
	}
	for _, m := range facts.Members {
		if m.Life().Alive && !w.alive(m.ID) {
			w.hurt("%s is not alive: %s", m.Named(), m.Life().Evidence)
		}
		if m.Status != nil && m.Listed && w.server(m.ID) != nil && w.server(m.ID).size != m.Status.SizeBytes {
			w.hurt("%s has the facts of another member", m.Named())
		}
	}
	if (report.Verdict == Healthy || report.Verdict == Degraded) && !w.serves(cfg) {
		w.hurt("verdict %s without quorum", report.Verdict)
	}
	for _, s := range w.members {
		if report.Verdict == Healthy && (!s.m.IsLearner && !w.alive(s.m.ID) || len(s.alarms) > 0) {
			w.hurt("healthy, and %x is not", s.m.ID)
		}
		if m, err := Resolve(facts.Listed(), fmt.Sprintf("%016x", s.m.ID)); len(facts.Listed()) > 0 && (err != nil || m.ID != s.m.ID) {
			w.hurt("%x is not found by its id: %v", s.m.ID, err)
		}
		same := slices.DeleteFunc(slices.Clone(w.members), func(o *fakeServer) bool { return o.m.Name != s.m.Name })
		if _, err := Resolve(facts.Listed(), s.m.Name); len(facts.Listed()) > 0 && s.m.Name != "" && (len(same) > 1) != errors.Is(err, ErrAmbiguous) {
			w.hurt("name %s of %d members: %v", s.m.Name, len(same), err)
		}
	}
	for _, m := range Successors(facts, leaderID(facts.Members)) {
		if !w.alive(m.ID) || w.server(m.ID).m.IsLearner {
			w.hurt("%s cannot lead", m.Named())
		}
	}
}

// checkGuards applies each change that a guard lets pass to raft's
// configuration.
func (w *world) checkGuards(seen map[string]int, facts Facts) {
	check := func(name string, c Change, err error, kind raftpb.ConfChangeType, id uint64) {
		if err != nil {
			seen[name+" refused"]++
			return
		}
		seen[name]++
		after, err := w.change(kind, id)
		if err != nil {
			return // raft itself refuses to remove the last voter
		}
		if !w.serves(after) {
			w.hurt("%s of %x: %s", name, id, c)
		}
		if got := c.After.Voters; got != len(after.Voters.IDs()) {
			w.hurt("%s of %x: %d voters, raft has %d", name, id, got, len(after.Voters.IDs()))
		}
	}
	if len(facts.Listed()) == 0 {
		return
	}
	c, err := GuardAdd(facts, false)
	check("add", c, err, raftpb.ConfChangeAddNode, 0xdef)
	for _, s := range w.members {
		c, err := GuardRemove(facts, s.m.ID)
		check("remove", c, err, raftpb.ConfChangeRemoveNode, s.m.ID)
		if s.m.IsLearner {
			c, err := GuardPromote(facts, s.m.ID)
			if err == nil && !w.alive(s.m.ID) {
				w.hurt("a vote for %x, which is not alive", s.m.ID)
			}
			check("promote", c, err, raftpb.ConfChangeAddNode, s.m.ID)
		}
	}
}

// checkCommand runs a command, dry first: the world notes what it harms.
func (w *world) checkCommand(ctx context.Context, seen map[string]int, endpoints []string) {
	tools, target := w.tools(), w.members[w.IntN(len(w.members))].m
	defrag := DefragOptions{All: true, Compact: w.IntN(2) == 0, GateTimeout: time.Second, StallTimeout: time.Second}
	name, run := "defrag", func(dry bool) (err error) {
		if dry {
			_, err = DefragDryRun(ctx, tools, endpoints, defrag)
		} else {
			_, err = Defrag(ctx, tools, endpoints, defrag)
		}
		return err
	}
	switch w.IntN(modelCommands) {
	case 1:
		name, run = "recover", func(dry bool) error {
			_, err := Recover(ctx, tools, endpoints, RecoverOptions{DryRun: dry, Keep: 10, Defrag: DefragOptions{GateTimeout: time.Second}})
			return err
		}
	case 2:
		name, run = "replace", w.replace(ctx, tools, endpoints, target)
	case 3:
		name, run = "promote --wait", func(dry bool) error {
			if dry || !target.IsLearner {
				return nil
			}
			return Promote(ctx, tools, endpoints, target.ID, PromoteOptions{Deadline: 2 * time.Second})
		}
	}
	dry := run(true)
	if w.changes > 0 {
		w.hurt("the dry run of %s changed something", name)
	}
	steady := !w.flaps()
	err := run(false)
	switch {
	case errors.Is(err, ErrTwoClusters):
		seen["two clusters"]++
	case err != nil:
		seen[name+" refused"]++
	default:
		seen[name+" ok"]++
	}
	judged := errors.Is(err, ErrRefused) || errors.Is(err, ErrUnhealthy) || errors.Is(err, ErrUnknown)
	switch {
	case err != nil && w.changes > 0 && judged && steady:
		w.hurt("%s refuses after its first change: %v", name, err)
	case dry == nil && judged && name != "promote --wait" && steady:
		w.hurt("the dry run of %s lets pass what the run refuses: %v", name, err)
	case dry != nil && err == nil && steady:
		w.hurt("the dry run of %s refuses what the run does: %v", name, dry)
	}
}

// With a member of five cut off no member may be taken out of service, which is
// known before anything is compacted.
func TestRecoverCompactsNothingThatItCannotFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{Rand: rand.New(rand.NewPCG(1, 1)), id: 0xc1, urls: map[string][]*fakeServer{}, keys: map[string]string{}, commit: 100}
		var endpoints []string
		for i := range 5 {
			s := w.newServer(i, false, 0)
			s.alarms, s.size = nil, s.quota
			w.members = append(w.members, s)
			w.urls[bare(s.m.ClientURLs[0])] = []*fakeServer{s}
			endpoints = append(endpoints, s.m.ClientURLs[0])
		}
		w.members[0].alarms = []pb.AlarmType{pb.AlarmType_NOSPACE}
		w.members[4].cut = true
		for _, dry := range []bool{true, false} {
			_, err := Recover(t.Context(), w.tools(), endpoints, RecoverOptions{DryRun: dry, Keep: 10, Defrag: DefragOptions{GateTimeout: time.Second}})
			if !errors.Is(err, ErrUnhealthy) || w.history || len(w.harm) > 0 {
				t.Errorf("dry run %v: %v, compacted %v, %v; want a verdict and nothing changed", dry, err, w.history, w.harm)
			}
		}
	})
}

// replace replaces a member, and starts the new one when it is told to.
func (w *world) replace(ctx context.Context, tools Tools, endpoints []string, target *pb.Member) func(bool) error {
	opts := ReplaceOptions{Old: fmt.Sprintf("%x", target.ID), Name: target.Name, PeerURLs: []string{"http://new:2380"}, Deadline: 5 * time.Second}
	if opts.Name == "" {
		opts.Name = "new"
	}
	if w.IntN(3) == 0 {
		opts.PeerURLs = target.PeerURLs
	}
	opts.Added = func(string) {
		s := w.server(0xabc)
		s.dead, s.m.Name, s.m.ClientURLs = false, opts.Name, []string{"http://new"}
		w.urls["new"] = []*fakeServer{s}
	}
	return func(dry bool) error {
		opts.DryRun = dry
		_, err := Replace(ctx, tools, endpoints, opts)
		return err
	}
}

// flaps reports whether some URL leads to another member now and then, so that
// two looks may see different things.
func (w *world) flaps() bool {
	for _, behind := range w.urls {
		if len(behind) > 1 {
			return true
		}
	}
	return false
}
