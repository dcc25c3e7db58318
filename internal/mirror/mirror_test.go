package mirror_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/mirror"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

// pair is two clusters and a mirror between them.
type pair struct {
	t          *testing.T
	from, to   *clientv3.Client
	checkpoint string
	change     func(*mirror.Mirror)
}

// revision is the number in a checkpoint.
const revision = `"revision": \d+`

func newPair(t *testing.T) *pair {
	from := etcdtest.Start(t, embedded.Options{Members: 1})
	to := etcdtest.Start(t, embedded.Options{Members: 1})
	return &pair{
		t: t, from: etcdtest.Client(t, from.Endpoints()...), to: etcdtest.Client(t, to.Endpoints()...),
		checkpoint: filepath.Join(t.TempDir(), "checkpoint.json"), change: func(*mirror.Mirror) {},
	}
}

func (p *pair) mirror() *mirror.Mirror {
	m := &mirror.Mirror{
		From: p.from, To: p.to, Prefix: "a/", DestPrefix: "b/", Checkpoint: p.checkpoint, MaxTxnOps: 2,
		Timeout: time.Minute, GiveUp: time.Minute, Note: func(string, ...any) {},
		ConfirmDelete: func(int) error { return nil },
	}
	p.change(m)
	return m
}

// during runs the mirror, calls fn, waits until the destination is the same and
// ends the mirror.
func (p *pair) during(fn func()) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	defer cancel()
	m := p.mirror()
	if _, err := m.Prepare(ctx); err != nil {
		p.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	fn()
	p.same()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		p.t.Errorf("ended with %v", err)
	}
}

// same waits until the destination holds what the source holds.
func (p *pair) same() {
	p.t.Helper()
	etcdtest.Until(p.t, "the mirror to be the same", func(ctx context.Context) bool {
		want, got := content(ctx, p.from, "a/"), content(ctx, p.to, "b/")
		return want != nil && maps.Equal(want, got)
	})
}

func content(ctx context.Context, c *clientv3.Client, prefix string) map[string]string {
	resp, err := c.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return nil
	}
	all := map[string]string{}
	for _, kv := range resp.Kvs {
		all[string(kv.Key[len(prefix):])] = string(kv.Value)
	}
	return all
}

func put(t *testing.T, c *clientv3.Client, key, value string) {
	t.Helper()
	if _, err := c.Put(t.Context(), key, value); err != nil {
		t.Fatal(err)
	}
}

func del(t *testing.T, c *clientv3.Client, key string) {
	t.Helper()
	if _, err := c.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
}

// etcd-io/etcd#13271, #9359
func TestAMirrorGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	etcdtest.Fill(t, p.from, "a/", 300, 10)
	put(t, p.from, "other", "x")
	p.during(func() {
		txn := []clientv3.Op{clientv3.OpPut("a/1", "1"), clientv3.OpPut("a/2", "2"), clientv3.OpPut("a/3", "3"), clientv3.OpDelete("a/000001")}
		if _, err := p.from.Txn(t.Context()).Then(txn...).Commit(); err != nil {
			t.Error(err)
		}
	})

	// Changes and deletions made while nobody looked.
	put(t, p.from, "a/new", "1")
	del(t, p.from, "a/000002")
	p.during(func() {})

	// The same, with the history gone: all keys are compared.
	put(t, p.from, "a/newer", "1")
	del(t, p.from, "a/000003")
	resp, err := p.from.Put(t.Context(), "a/last", "1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.from.Compact(t.Context(), resp.Header.Revision); err != nil {
		t.Fatal(err)
	}
	asked := 0
	p.change = func(m *mirror.Mirror) {
		m.DeleteExtra = true
		m.ConfirmDelete = func(n int) error { asked = n; return nil }
	}
	p.during(func() {})
	if asked != 1 {
		t.Errorf("asked about %d keys to delete, want 1", asked)
	}
}

func TestExtraKeysStayUnlessTheyMayGo(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	put(t, p.to, "b/extra", "mine")
	put(t, p.from, "a/1", "1")
	no := errors.New("no")
	p.change = func(m *mirror.Mirror) {
		m.DeleteExtra = true
		m.ConfirmDelete = func(int) error { return no }
	}
	m := p.mirror()
	if _, err := m.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := m.Run(t.Context()); !errors.Is(err, no) {
		t.Errorf("error %v", err)
	}
	if got := content(t.Context(), p.to, "b/"); got["extra"] != "mine" {
		t.Errorf("destination %v", got)
	}
	if _, err := os.Stat(p.checkpoint); err == nil {
		t.Error("there is a checkpoint, though the comparison did not end")
	}
}

func TestACheckpointThatDoesNotFitIsRefused(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	put(t, p.from, "a/1", "1")
	p.during(func() {})
	fits := p.mirror()
	if resumes, err := fits.Prepare(t.Context()); !resumes || err != nil {
		t.Errorf("its own checkpoint: %t, %v", resumes, err)
	}
	rewritten := func(with string) func(*mirror.Mirror) {
		return func(m *mirror.Mirror) {
			m.Checkpoint = filepath.Join(t.TempDir(), "c.json")
			b, err := os.ReadFile(p.checkpoint)
			if err == nil {
				b = []byte(regexp.MustCompile(revision).ReplaceAllString(string(b), with))
				err = os.WriteFile(m.Checkpoint, b, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, tc := range map[string]struct {
		change func(*mirror.Mirror)
		want   error
	}{
		"another prefix":       {func(m *mirror.Mirror) { m.Prefix = "c/" }, mirror.ErrCheckpoint},
		"another destination":  {func(m *mirror.Mirror) { m.To = p.from }, mirror.ErrCheckpoint},
		"the clusters swapped": {func(m *mirror.Mirror) { m.From, m.To = m.To, m.From }, mirror.ErrCheckpoint},
		"a source gone back":   {rewritten(`"revision": 99999`), mirror.ErrWentBack},
		"no checkpoint at all": {rewritten(`"revision": "x"`), nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := p.mirror()
			tc.change(m)
			_, err := m.Prepare(t.Context())
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
		})
	}
}

// etcd-io/etcd#9569
func TestAMirrorReconnectsOrEnds(t *testing.T) {
	t.Parallel()
	from := etcdtest.Start(t, embedded.Options{Members: 1})
	to := etcdtest.Start(t, embedded.Options{Members: 1})
	p := &pair{t: t, from: etcdtest.Client(t, from.Endpoints()...), to: etcdtest.Client(t, to.Endpoints()...), change: func(m *mirror.Mirror) {
		m.Timeout = 2 * time.Second
	}}
	put(t, p.from, "a/1", "1")
	p.during(func() {
		p.same()
		for _, member := range []*embedded.Member{from.Members[0], to.Members[0]} {
			member.Stop()
			if err := member.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			// While its connections come back, a client does not try a write twice.
			etcdtest.Until(t, "a write after the restart", func(ctx context.Context) bool {
				_, err := p.from.Put(ctx, "a/"+member.Endpoint(), "after the restart")
				return err == nil
			})
			p.same()
		}
	})
	p.change = func(m *mirror.Mirror) { m.Timeout, m.GiveUp = time.Second, 2*time.Second }
	m := p.mirror()
	etcdtest.Until(t, "both clusters, each answering in time", func(ctx context.Context) bool { _, err := m.Prepare(ctx); return err == nil })
	from.Members[0].Stop()
	if err := m.Run(t.Context()); !errors.Is(err, mirror.ErrLost) {
		t.Errorf("a source that is gone: %v, want that it was given up", err)
	}

	// Whoever never gives up hears of it, and waits.
	p.change = func(m *mirror.Mirror) { m.Timeout, m.GiveUp = time.Second, 0 }
	m = p.mirror()
	if err := from.Members[0].Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	etcdtest.Until(t, "both clusters", func(ctx context.Context) bool { _, err := m.Prepare(ctx); return err == nil })
	from.Members[0].Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if err := m.Run(ctx); errors.Is(err, mirror.ErrLost) || ctx.Err() == nil {
		t.Errorf("ended with %v before its context", err)
	}
}
