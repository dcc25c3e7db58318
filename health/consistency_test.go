package health_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"

	"github.com/etcdkit/etcdkit/health"
)

// change edits the newest value of a key in a stopped member's database.
func change(t *testing.T, dataDir, key, value string) {
	t.Helper()
	edit(t, dataDir, key, func(kv *mvccpb.KeyValue) { kv.Value = []byte(value) })
}

// edit changes the newest revision of a key in a stopped member's database.
func edit(t *testing.T, dataDir, key string, change func(*mvccpb.KeyValue)) {
	t.Helper()
	db, err := bolt.Open(filepath.Join(dataDir, "member", "snap", "db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Update(func(tx *bolt.Tx) error {
		bucket := tx.Bucket([]byte("key"))
		cursor := bucket.Cursor()
		for rev, raw := cursor.Last(); rev != nil; rev, raw = cursor.Prev() {
			var kv mvccpb.KeyValue
			if err := proto.Unmarshal(raw, &kv); err != nil {
				return err
			}
			if string(kv.Key) != key {
				continue
			}
			change(&kv)
			edited, err := proto.Marshal(&kv)
			if err != nil {
				return err
			}
			return bucket.Put(rev, edited)
		}
		return fmt.Errorf("no key %q", key)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestConsistencyFindsTheKeysThatDiffer(t *testing.T) {
	t.Parallel()
	cluster := start(t, 3, nil)
	client := connect(t, cluster.Endpoints()...)
	for i := range 300 {
		put(t, client, fmt.Sprintf("key/%03d", i), strings.Repeat("v", 100))
	}
	good, err := health.CheckConsistency(t.Context(), doors(), cluster.Endpoints(), health.ConsistencyOptions{})
	if err != nil || good.Result != health.HashesEqual {
		t.Fatalf("before: %s, %v; want equal", good.Result, err)
	}

	cluster.Members[1].Stop()
	change(t, cluster.Members[1].DataDir(), "key/123", "forged")
	if err := cluster.Members[1].Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	leader(t, cluster)
	got, err := health.CheckConsistency(t.Context(), doors(), cluster.Endpoints(), health.ConsistencyOptions{})
	if !errors.Is(err, health.ErrDiffers) {
		t.Fatalf("after: %s, %v; want ErrDiffers", got.Result, err)
	}
	if len(got.Differences) != 1 || got.Differences[0].Key != "key/123" || got.Keys != 300 {
		t.Errorf("differences %+v of %d keys, want key/123 of 300", got.Differences, got.Keys)
	}
	next := fmt.Sprintf("etcdkit member replace %016x --name m2 --peer-urls %s", cluster.Members[1].ID(), cluster.Members[1].PeerURL())
	if len(got.Suspects) != 1 || got.Suspects[0] != (health.Suspect{Member: "m2", Keys: 1, Next: next}) {
		t.Errorf("suspects %+v, want m2 with one key and its replacement", got.Suspects)
	}
	report, err := health.Check(t.Context(), doors(), cluster.Endpoints(), health.Options{Hash: true})
	if !errors.Is(err, health.ErrUnhealthy) {
		t.Errorf("health --hash: %s, %v; want unhealthy", report.Verdict, err)
	}
}

// Hashes taken under writes and at different moments are no corruption
// (etcd-io/etcd PR #14510).
func TestHashesUnderWritesAreNoFalseAlarm(t *testing.T) {
	t.Parallel()
	cluster := start(t, 3, nil)
	ctx, stop := context.WithCancel(t.Context())
	written := make(chan struct{})
	go func() {
		defer close(written)
		client, err := open(ctx, cluster.Endpoints()...)
		if err != nil {
			return
		}
		defer client.Close()
		for i := 0; ctx.Err() == nil; i++ {
			resp, err := client.Put(ctx, fmt.Sprint("k", i%50), fmt.Sprint(i))
			if err == nil && i%100 == 99 {
				_, _ = client.Compact(ctx, resp.Header.Revision-20)
			}
		}
	}()
	for range 10 {
		got, err := health.Compare(t.Context(), doors(), cluster.Endpoints(), health.Options{Reads: 1})
		if errors.Is(err, health.ErrDiffers) {
			t.Errorf("false alarm: %+v", got.Hashes)
		}
	}
	stop()
	<-written
}

func TestOneMemberHasNobodyToDifferFrom(t *testing.T) {
	t.Parallel()
	cluster := start(t, 1, nil)
	if got, err := health.Compare(t.Context(), doors(), cluster.Endpoints(), health.Options{}); err != nil {
		t.Errorf("%+v, %v", got, err)
	}
}
