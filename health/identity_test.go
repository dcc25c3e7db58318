package health_test

import (
	"encoding/binary"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/protobuf/proto"

	"github.com/etcdkit/etcdkit/health"
)

// The usual copy and paste: every member advertises the first one's URL. The
// first one's answers must not stand for the others.
func TestMembersThatAdvertiseOneURL(t *testing.T) {
	t.Parallel()
	var listen []string
	cluster := start(t, 3, func(i int, cfg *embed.Config) {
		listen = append(listen, cfg.ListenClientUrls[0].String())
		if i > 0 {
			cfg.AdvertiseClientUrls[0].Host = strings.TrimPrefix(listen[0], "http://")
		}
	})
	opts := health.Options{Hash: true, Timeout: 2 * time.Second, Limits: lenient()}
	poll(t, "three members at their own addresses", func() (bool, any) {
		got, err := health.Check(t.Context(), doors(), listen, opts)
		return err == nil && got.Cluster.Alive == 3 && got.Cluster.Hash.Result == health.HashesEqual && got.Verdict == health.Degraded, got
	})

	cluster.Members[2].Stop()
	got, err := health.Check(t.Context(), doors(), listen[:1], opts)
	if !errors.Is(err, health.ErrUnhealthy) || got.Cluster.Alive != 1 || got.Cluster.CanLose != 0 || !strings.Contains(got.Problems[0].Evidence, "was answered by m1") {
		t.Errorf("%s, %v: %+v %+v; want unhealthy, and who answered", got.Verdict, err, got.Cluster, got.Problems)
	}
	for _, p := range got.Problems {
		if strings.Contains(p.Next, "snapshot restore") {
			t.Errorf("sent to a restore while reads are served: %+v", p)
		}
	}
	if c, err := health.Compare(t.Context(), doors(), listen[:1], opts); !errors.Is(err, health.ErrNotCompared) {
		t.Errorf("compare: %v, %+v; want that not all were compared", err, c.Hashes)
	}
	out, err := health.Defrag(t.Context(), toolsFor(t, cluster), listen[:1], health.DefragOptions{All: true})
	if !errors.Is(err, health.ErrRefused) || len(out.Steps) > 0 {
		t.Errorf("defragment: %v, steps %s; want a refusal", err, done(out))
	}
}

func TestEndpointsOfTwoClustersAreRefused(t *testing.T) {
	t.Parallel()
	one, two := start(t, 1, nil), start(t, 1, nil)
	both := []string{one.Endpoints()[0], two.Endpoints()[0]}
	tools := toolsFor(t, one)
	_, checked := health.Check(t.Context(), doors(), both, health.Options{})
	_, compared := health.CheckConsistency(t.Context(), doors(), both, health.ConsistencyOptions{})
	_, defragmented := health.Defrag(t.Context(), tools, both, health.DefragOptions{All: true})
	_, recovered := health.Recover(t.Context(), tools, both, health.RecoverOptions{})
	_, replaced := health.Replace(t.Context(), tools, both, health.ReplaceOptions{Old: "m1", Name: "m2", PeerURLs: []string{"http://127.0.0.1:1"}})
	_, _, moved := health.MoveToAny(t.Context(), tools, both)
	for what, err := range map[string]error{
		"health": checked, "consistency": compared, "defrag-all": defragmented, "recover": recovered, "replace": replaced, "move-leader": moved,
	} {
		if !errors.Is(err, health.ErrTwoClusters) {
			t.Errorf("%s: %v, want ErrTwoClusters", what, err)
		}
	}
	for _, c := range both {
		if resp, err := connect(t, c).Get(t.Context(), "\x00"); err != nil || resp.Header.Revision != 1 {
			t.Errorf("%s is at revision %d, %v; want nothing written", c, resp.Header.Revision, err)
		}
	}
}

// addRevision writes a revision into a stopped member's database that no other
// member has.
func addRevision(t *testing.T, dataDir, key string) {
	t.Helper()
	db, err := bolt.Open(filepath.Join(dataDir, "member", "snap", "db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Update(func(tx *bolt.Tx) error {
		bucket := tx.Bucket([]byte("key"))
		last, _ := bucket.Cursor().Last()
		revision := binary.BigEndian.Uint64(last) + 1
		name := append(binary.BigEndian.AppendUint64(nil, revision), '_')
		name = binary.BigEndian.AppendUint64(name, 0)
		raw, err := proto.Marshal(&mvccpb.KeyValue{Key: []byte(key), Value: []byte("forged"), CreateRevision: int64(revision), ModRevision: int64(revision), Version: 1})
		if err != nil {
			return err
		}
		return bucket.Put(name, raw)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// stored makes a member write what it has applied to its database, which a
// defragmentation begins with.
func stored(t *testing.T, endpoint string) {
	t.Helper()
	client := connect(t, endpoint)
	if _, err := client.Get(t.Context(), "a"); err != nil { // it has applied what was committed
		t.Fatal(err)
	}
	if _, err := client.Defragment(t.Context(), endpoint); err != nil {
		t.Fatal(err)
	}
}

// A member that has a revision more than the others, of which nothing shows at
// the revision that all have.
func TestAMemberThatIsOneRevisionAhead(t *testing.T) {
	t.Parallel()
	cluster := start(t, 3, nil)
	put(t, connect(t, cluster.Endpoints()...), "a", "1")
	stored(t, cluster.Members[1].Endpoint())
	cluster.Members[1].Stop()
	addRevision(t, cluster.Members[1].DataDir(), "forged")
	if err := cluster.Members[1].Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	leader(t, cluster)
	poll(t, "a difference", func() (bool, any) {
		got, err := health.CheckConsistency(t.Context(), doors(), cluster.Endpoints(), health.ConsistencyOptions{})
		if got.Result == health.HashesEqual {
			t.Fatalf("%+v is called equal", got.Hashes)
		}
		if !errors.Is(err, health.ErrDiffers) || !strings.Contains(got.Ahead, "m2") {
			return false, got.Hashes
		}
		// The key that only m2 has is listed, and it alone.
		if len(got.Differences) != 1 || got.Differences[0].Key != "forged" || len(got.Suspects) != 1 || !strings.HasPrefix(got.Suspects[0].Member, "m2") {
			t.Fatalf("differences %+v, suspects %+v; want forged, of m2", got.Differences, got.Suspects)
		}
		return true, nil
	})
}

// A lease or a create revision of its own is a difference of the key.
func TestConsistencyComparesWholeKeys(t *testing.T) {
	t.Parallel()
	cluster := start(t, 3, nil)
	put(t, connect(t, cluster.Endpoints()...), "leased", "v")
	stored(t, cluster.Members[2].Endpoint())
	cluster.Members[2].Stop()
	edit(t, cluster.Members[2].DataDir(), "leased", func(kv *mvccpb.KeyValue) { kv.Lease = 77 })
	if err := cluster.Members[2].Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	leader(t, cluster)
	got, err := health.CheckConsistency(t.Context(), doors(), cluster.Endpoints(), health.ConsistencyOptions{})
	if !errors.Is(err, health.ErrDiffers) || len(got.Differences) != 1 || got.Differences[0].Key != "leased" ||
		!slices.ContainsFunc(got.Differences[0].Members, func(v health.Version) bool { return v.Lease == 77 }) {
		t.Errorf("%v, %+v; want the lease of m3", err, got.Differences)
	}
}
