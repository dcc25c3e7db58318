package snapshot_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/mvccdb"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/internal/testing/reference"
)

// What real servers write under load must never be called damaged.
func TestNothingIsDamagedInWhatEveryVersionOfEtcdWrites(t *testing.T) {
	rounds, programs := 3, reference.Servers()
	if fullRun {
		rounds = 20
	} else {
		programs = programs[:1]
	}
	for _, program := range programs {
		t.Run(string(program), func(t *testing.T) {
			c := etcdtest.Client(t, etcdtest.StartServers(t, etcdtest.ServerOptions{Program: program}).Endpoints()...)
			r := rand.New(rand.NewPCG(5, 5))
			for round := range rounds {
				for range 60 {
					change(t, c, r)
				}
				ctx, cancel := context.WithCancel(t.Context())
				busy := make(chan struct{})
				go func() {
					defer close(busy)
					for i := 0; ctx.Err() == nil; i++ {
						_, _ = c.Put(ctx, fmt.Sprintf("busy/%d", i%20), "x")
					}
				}()
				stream, err := c.Snapshot(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				b, err := io.ReadAll(stream)
				cancel()
				<-busy
				if err != nil {
					t.Fatal(err)
				}
				db, err := mvccdb.Open(bytes.NewReader(b), int64(len(b)))
				if err != nil {
					t.Fatal(err)
				}
				report, err := db.Check(t.Context(), mvccdb.CheckOptions{})
				if err != nil || !report.Good() {
					t.Fatalf("round %d: %v, %v; want a good database", round, report.Damage, err)
				}
			}
		})
	}
}

// change does one of the things that clients do.
func change(t *testing.T, c *clientv3.Client, r *rand.Rand) {
	t.Helper()
	ctx := t.Context()
	key := func() string { return fmt.Sprintf("k/%d", r.IntN(40)) }
	var err error
	switch r.IntN(12) {
	case 0:
		_, err = c.Delete(ctx, key())
	case 1:
		_, err = c.Delete(ctx, "k/1", clientv3.WithPrefix())
	case 2:
		var lease *clientv3.LeaseGrantResponse
		if lease, err = c.Grant(ctx, 60); err == nil {
			_, err = c.Put(ctx, key(), "leased", clientv3.WithLease(lease.ID))
		}
		if err == nil && r.IntN(2) == 0 {
			_, err = c.Revoke(ctx, lease.ID)
		}
	case 3:
		_, err = c.Txn(ctx).If(clientv3.Compare(clientv3.Version("k/2"), ">", 0)).
			Then(clientv3.OpPut("k/2", ""), clientv3.OpPut("k/3", "b"), clientv3.OpDelete("k/9"),
				clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpPut("k/5", "nested")}, nil)).
			Else(clientv3.OpPut("k/2", "a")).Commit()
	case 4:
		var resp *clientv3.GetResponse
		if resp, err = c.Get(ctx, "k/1"); err == nil && r.IntN(3) == 0 {
			_, _ = c.Compact(ctx, resp.Header.Revision-int64(r.IntN(30))) // may be behind the last one
		}
	case 5:
		_, _ = c.Put(ctx, key(), "", clientv3.WithIgnoreValue()) // the key may not exist
	default:
		_, err = c.Put(ctx, key(), string(make([]byte, r.IntN(3000))))
	}
	if err != nil {
		t.Fatal(err)
	}
	if r.IntN(100) == 0 {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		_, _ = c.Defragment(ctx, c.Endpoints()[0])
	}
}
