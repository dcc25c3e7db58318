package snapshot_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/internal/testing/reference"
	"github.com/etcdkit/etcdkit/snapshot"
)

// killCase is a cluster that is killed while it is busy.
type killCase struct {
	name    string
	servers etcdtest.ServerOptions
	kills   int
}

func killCases() []killCase {
	if !fullRun {
		return []killCase{{"three members", etcdtest.ServerOptions{Members: 3}, 1}}
	}
	return []killCase{
		{"three members with default settings", etcdtest.ServerOptions{Members: 3, Fsync: true}, 50},
		{"a slow backend", etcdtest.ServerOptions{Members: 3, Fsync: true, Flags: lazyBackend}, 10},
		{"a separate WAL directory", etcdtest.ServerOptions{Members: 3, Fsync: true, WALBeside: true}, 10},
		{"3.5, three members", etcdtest.ServerOptions{Members: 3, Fsync: true, Program: reference.Etcd35}, 10},
		{"3.5, one member", etcdtest.ServerOptions{Fsync: true, Program: reference.Etcd35}, 10},
		{"3.6, three members", etcdtest.ServerOptions{Members: 3, Fsync: true, Program: reference.Etcd36}, 10},
		{"3.6, one member", etcdtest.ServerOptions{Fsync: true, Program: reference.Etcd36}, 10},
		{"3.7, one member", etcdtest.ServerOptions{Fsync: true}, 10},
	}
}

// No acknowledged write is lost where all members are killed and the cluster is
// recovered from the directory that Compare calls the best, and the result boots
// in the version that wrote it.
func TestNoAcknowledgedWriteIsLostWithTheMembers(t *testing.T) {
	for _, tc := range killCases() {
		t.Run(tc.name, func(t *testing.T) {
			s := etcdtest.StartServers(t, tc.servers)
			var sum outcome
			for i := range tc.kills {
				round := fmt.Sprintf("/%03d/", i)
				l := busy(t, s, round)
				members := 1
				if i == 0 && fullRun {
					members = len(s.Members) // each restored by itself
				}
				sum.add(recoverFrom(t, s, tc.servers, members, l))
				if i+1 < tc.kills {
					s.Start()
				}
			}
			t.Logf("%d kills: %d acknowledged writes, %d lost; %d entries applied that no database held, %d of them beyond the recorded commit; %d torn logs",
				tc.kills, sum.acknowledged, sum.lost, sum.applied, sum.beyond, sum.torn)
			if sum.lost > 0 || sum.acknowledged == 0 {
				t.Errorf("lost %d of %d acknowledged writes", sum.lost, sum.acknowledged)
			}
		})
	}
}

// outcome counts what kills did.
type outcome struct {
	acknowledged, lost, torn int
	applied, beyond          uint64
}

func (o *outcome) add(p outcome) {
	o.acknowledged, o.lost, o.torn = o.acknowledged+p.acknowledged, o.lost+p.lost, o.torn+p.torn
	o.applied, o.beyond = o.applied+p.applied, o.beyond+p.beyond
}

// ledger is what writers know of their keys: each key has one writer, which
// writes one value after the other.
type ledger struct {
	mu           sync.Mutex
	acknowledged int
	keys         map[string]*written
}

// written is the state of a key: the last one that was acknowledged, and those
// tried since then, of which each may have happened.
type written struct {
	value string // "" is deleted
	tried []string
}

func (l *ledger) note(key, value string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.keys[key]
	if w == nil {
		w = &written{}
		l.keys[key] = w
	}
	if err != nil {
		w.tried = append(w.tried, value)
		return
	}
	l.acknowledged++
	w.value, w.tried = value, nil
}

// busy writes through all members from many sides, and kills them in the middle.
func busy(t *testing.T, s *etcdtest.Servers, prefix string) *ledger {
	t.Helper()
	const writers, keysOfWriter, enough = 4, 20, 200
	l := &ledger{keys: make(map[string]*written)}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	running := make(chan struct{})
	var once sync.Once
	var wg sync.WaitGroup
	for m, endpoint := range s.Endpoints() {
		c := etcdtest.Client(t, endpoint)
		for w := range writers {
			wg.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					key := fmt.Sprintf("%sm%d-w%d-%d", prefix, m, w, i%keysOfWriter)
					value, err := writeOnce(ctx, c, key, i)
					l.note(key, value, err)
					if l.count() > enough {
						once.Do(func() { close(running) })
					}
				}
			})
		}
	}
	<-running
	time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond) // the kill may come at any moment
	for _, m := range s.Members {
		m.Kill()
	}
	cancel()
	wg.Wait()
	return l
}

func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acknowledged
}

// writeOnce changes a key, and returns what it is then.
func writeOnce(ctx context.Context, c *clientv3.Client, key string, i int) (value string, err error) {
	const oneDelete, oneTxn, oneLarge = 7, 5, 11
	switch {
	case i%oneDelete == oneDelete-1:
		_, err = c.Delete(ctx, key)
		return "", err
	case i%oneTxn == oneTxn-1:
		value = strconv.Itoa(i)
		_, err = c.Txn(ctx).Then(clientv3.OpPut(key, "first"+value), clientv3.OpDelete(key+"-none")).Commit()
		return "first" + value, err
	case i%oneLarge == oneLarge-1:
		value = fmt.Sprintf("%020000d", i)
	default:
		value = strconv.Itoa(i)
	}
	_, err = c.Put(ctx, key, value)
	return value, err
}

// recoverFrom restores from the best directory of killed members, boots the
// result, and compares it with the ledger.
func recoverFrom(t *testing.T, s *etcdtest.Servers, opts etcdtest.ServerOptions, members int, l *ledger) outcome {
	t.Helper()
	var all []snapshot.Place
	for _, m := range s.Members {
		all = append(all, snapshot.Place{DataDir: m.DataDir, WALDir: m.WALDir})
	}
	candidates, best, err := snapshot.Compare(t.Context(), all, 10*time.Second)
	fail(t, err)
	if best < 0 {
		t.Fatalf("no directory to recover from: %+v", candidates)
	}
	to := etcdtest.NewServers(t, etcdtest.ServerOptions{Program: opts.Program, WALBeside: opts.WALBeside, Members: members})
	var r *snapshot.Restored
	for i := range to.Members {
		r = restoreDir(t, s.Members[best], to, i)
	}
	to.Start()
	got := everything(t, etcdtest.Client(t, to.Endpoints()[0]))
	for _, m := range to.Members {
		m.Stop()
	}
	fail(t, os.RemoveAll(filepath.Dir(to.Members[0].DataDir)))
	o := outcome{acknowledged: l.acknowledged, applied: r.Replayed.Entries, beyond: r.Replayed.BeyondCommit}
	if r.Replayed.Torn {
		o.torn++
	}
	for key, w := range l.keys {
		if have := got[key]; have != w.value && !slices.Contains(w.tried, have) {
			o.lost++
			t.Errorf("%s is %.40q, acknowledged was %.40q, tried since then %d", key, have, w.value, len(w.tried))
		}
	}
	return o
}
