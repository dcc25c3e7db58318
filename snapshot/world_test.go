package snapshot_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/store"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/internal/testing/faultproxy"
	"github.com/etcdkit/etcdkit/internal/testing/s3test"
	"github.com/etcdkit/etcdkit/snapshot"
)

// faultKeys of faultValue bytes make a database of several parts.
const (
	faultKeys  = 300
	faultValue = 64 << 10
	faultSize  = faultKeys * faultValue
)

// world is a cluster and a bucket, each behind a proxy that can break.
type world struct {
	members *embedded.Cluster
	server  *s3test.Server
	etcd    *faultproxy.TCP  // before the first member
	s3      *faultproxy.HTTP // before the store
	url     string
	direct  store.Store // past the proxy
	runs    snapshot.Runs
}

// newWorld builds the proxies and a repository of its own before a cluster and
// a server that cases share.
func newWorld(t *testing.T, members *embedded.Cluster, server *s3test.Server) *world {
	t.Helper()
	w := &world{members: members, server: server, runs: snapshot.Runs{Dir: t.TempDir()}}
	w.etcd = faultproxy.NewTCP(t, members.Endpoints()[0])
	w.s3 = faultproxy.NewHTTP(t, server.URL)
	w.url = "s3://" + server.Bucket(t) + "/repo/"
	w.direct = w.open(t, store.S3Options{Endpoint: server.URL})
	return w
}

func (w *world) open(t *testing.T, opts store.S3Options) store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), w.url, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// options are those of a save of several parts.
func (w *world) options() snapshot.SaveOptions {
	return snapshot.SaveOptions{Runs: w.runs, PartSize: store.MinPartSize, Parallel: 2, MaxDuration: time.Minute, Now: time.Now}
}

// save takes a backup past the proxies.
func (w *world) save(t *testing.T) *snapshot.Saved {
	t.Helper()
	saved, err := snapshot.Save(t.Context(), source(w.members.Endpoints()[0]), w.direct, w.options())
	if err != nil {
		t.Fatal(err)
	}
	return saved
}

// backups lists what claims to be a backup, and counts what is not one.
func (w *world) backups(t *testing.T) (all []*snapshot.Backup, fake int) {
	t.Helper()
	all, err := snapshot.List(t.Context(), w.direct, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range all {
		v, err := snapshot.Verify(t.Context(), w.direct, b, snapshot.VerifyOptions{NoRecord: true, Now: time.Now, Scratch: t.TempDir()})
		if err != nil || !v.OK {
			t.Errorf("%s claims to be a backup and is none: %+v, %v", b.Name, v, err)
			fake++
		}
	}
	return all, fake
}

// leftovers counts unfinished uploads and data without a manifest.
func (w *world) leftovers(t *testing.T) int {
	t.Helper()
	uploads, err := w.direct.Uploads(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := w.direct.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	manifests := map[string]bool{}
	for _, o := range objects {
		if base, ok := strings.CutSuffix(o.Key, ".json"); ok {
			manifests[base] = true
		}
	}
	n := len(uploads)
	for _, u := range uploads {
		t.Logf("left: upload %s", u.Key)
	}
	for _, o := range objects {
		base, _, _ := strings.Cut(o.Key, ".")
		if !manifests[base] {
			t.Logf("left: %s", o.Key)
			n++
		}
	}
	return n
}

// aftermath is what a fault left.
type aftermath struct{ found, lost, fake, left int }

// settle checks after a fault that nothing was lost, nothing false is there,
// and that the next run succeeds and leaves nothing behind.
func (w *world) settle(t *testing.T, before *snapshot.Saved) aftermath {
	t.Helper()
	w.etcd.Set(faultproxy.Faults{})
	w.s3.Clear()
	var a aftermath
	all, fake := w.backups(t)
	a.found, a.fake = len(all), fake
	if _, err := snapshot.Find(all, before.Manifest.Name, false); err != nil {
		t.Errorf("the backup before is lost: %v", err)
		a.lost++
	}
	w.save(t)
	if a.left = w.leftovers(t); a.left != 0 {
		t.Errorf("%d leftovers after the next run", a.left)
	}
	return a
}

// bigCluster starts a member with a database of several parts.
func bigCluster(t *testing.T) *embedded.Cluster {
	t.Helper()
	c := etcdtest.Start(t, embedded.Options{})
	client := etcdtest.Client(t, c.Endpoints()[0])
	value := strings.Repeat("0123456789abcdef", faultValue/16)
	for i := range faultKeys {
		if _, err := client.Put(t.Context(), fmt.Sprintf("/registry/big/%04d", i), value); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// tampered is a member whose snapshot stream is changed on its way.
type tampered struct {
	pb.UnimplementedMaintenanceServer
	behind pb.MaintenanceClient
	change func(all [][]byte) [][]byte
}

// Snapshot serves the member's snapshot, changed.
func (s *tampered) Snapshot(req *pb.SnapshotRequest, out grpc.ServerStreamingServer[pb.SnapshotResponse]) error {
	in, err := s.behind.Snapshot(out.Context(), req)
	if err != nil {
		return err
	}
	var all [][]byte
	for {
		resp, err := in.Recv()
		if err != nil {
			break
		}
		all = append(all, resp.Blob)
	}
	for _, blob := range s.change(all) {
		if err := out.Send(&pb.SnapshotResponse{Blob: blob}); err != nil {
			return err
		}
	}
	return nil
}

// tamperedClient is a client whose snapshots come from elsewhere.
type tamperedClient struct {
	*clientv3.Client
	conn *grpc.ClientConn
}

func (c *tamperedClient) ActiveConnection() *grpc.ClientConn { return c.conn }

// tamper returns the member at endpoint, with its snapshots changed.
func tamper(t *testing.T, endpoint string, change func(all [][]byte) [][]byte) snapshot.Source {
	t.Helper()
	behind := etcdtest.Client(t, endpoint)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterMaintenanceServer(server, &tampered{behind: pb.NewMaintenanceClient(behind.ActiveConnection()), change: change})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return snapshot.Source{Endpoints: []string{endpoint}, Dial: func(_ context.Context, endpoint string) (snapshot.Client, error) {
		c, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}})
		return &tamperedClient{c, conn}, err
	}}
}
