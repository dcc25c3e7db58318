package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/etcd"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

// streams is what a server makes of RangeStream.
type streams func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error)

// unknown answers like a server that does not have RangeStream.
func unknown(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if strings.HasSuffix(method, "RangeStream") {
		return nil, status.Error(codes.Unimplemented, "unknown method RangeStream")
	}
	return open(ctx, desc, cc, method, opts...)
}

// breaking lets streams end with a lost connection after the first pairs.
func breaking(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := open(ctx, desc, cc, method, opts...)
	if strings.HasSuffix(method, "RangeStream") && err == nil {
		return &brokenStream{ClientStream: s}, nil
	}
	return s, err
}

type brokenStream struct {
	grpc.ClientStream
	received int
}

func (s *brokenStream) RecvMsg(m any) error {
	if s.received++; s.received > 2 {
		return status.Error(codes.Unavailable, "connection lost")
	}
	return s.ClientStream.RecvMsg(m)
}

func clientWith(t *testing.T, endpoint string, streams streams) *clientv3.Client {
	t.Helper()
	cfg := clientv3.Config{Endpoints: []string{endpoint}}
	if streams != nil {
		cfg.DialOptions = []grpc.DialOption{grpc.WithChainStreamInterceptor(grpc.StreamClientInterceptor(streams))}
	}
	return etcdtest.ClientOf(t, cfg)
}

// read collects the keys that a Reader reads, and the head.
func read(ctx context.Context, r etcd.Reader, req *pb.RangeRequest, after func()) (keys []string, head *pb.RangeResponse, err error) {
	err = r.Read(ctx, req, etcd.Sink{
		Head: func(h *pb.RangeResponse) error { head = h; return nil },
		Pairs: func(kvs []*mvccpb.KeyValue) error {
			for _, kv := range kvs {
				keys = append(keys, string(kv.Key))
			}
			if after != nil {
				after()
				after = nil
			}
			return nil
		},
	})
	return keys, head, err
}

func TestReaderReadsWhatARangeHolds(t *testing.T) {
	c := etcdtest.Start(t, embedded.Options{Members: 1})
	plain := clientWith(t, c.Endpoints()[0], nil)
	etcdtest.Fill(t, plain, "k", 2000, 200)
	whole := &pb.RangeRequest{Key: []byte("k"), RangeEnd: []byte("l")}
	for server, streams := range map[string]streams{"streams": nil, "pages": unknown, "a broken stream": breaking} {
		client := clientWith(t, c.Endpoints()[0], streams)
		for name, req := range map[string]*pb.RangeRequest{
			"all":          whole,
			"keys only":    {Key: []byte("k"), RangeEnd: []byte("l"), KeysOnly: true},
			"a limit":      {Key: []byte("k"), RangeEnd: []byte("l"), Limit: 777},
			"a small one":  {Key: []byte("k"), RangeEnd: []byte("l"), Limit: 3},
			"an old one":   {Key: []byte("k"), RangeEnd: []byte{0}, Revision: 5},
			"nothing":      {Key: []byte("x"), RangeEnd: []byte("y")},
			"serializable": {Key: []byte("k"), RangeEnd: []byte("l"), Serializable: true},
		} {
			t.Run(server+", "+name, func(t *testing.T) {
				want, err := clientv3.RetryKVClient(plain).Range(t.Context(), req)
				if err != nil {
					t.Fatal(err)
				}
				// What is written meanwhile must not be seen.
				meanwhile := func() {
					if _, err := plain.Put(t.Context(), "k999999", "new"); err != nil {
						t.Error(err)
					}
					if _, err := plain.Delete(t.Context(), "k999999"); err != nil {
						t.Error(err)
					}
				}
				got, head, err := read(t.Context(), etcd.Reader{Client: client, Timeout: time.Minute}, req, meanwhile)
				if err != nil || len(got) != len(want.Kvs) || head.Count != want.Count || head.More != want.More {
					t.Fatalf("%d keys, count %d, more %t, %v; want %d, %d, %t", len(got), head.GetCount(), head.GetMore(), err, len(want.Kvs), want.Count, want.More)
				}
				for i, kv := range want.Kvs {
					if got[i] != string(kv.Key) {
						t.Fatalf("key %d is %q, want %q", i, got[i], kv.Key)
					}
				}
			})
		}
	}
	if _, _, err := read(t.Context(), etcd.Reader{Client: clientWith(t, c.Endpoints()[0], unknown), Timeout: time.Minute, StreamOnly: true}, whole, nil); status.Code(err) != codes.Unimplemented {
		t.Errorf("streams only: %v", err)
	}
}

func TestReaderAsksAgainForAPageThatIsTooLarge(t *testing.T) {
	c := etcdtest.Start(t, embedded.Options{Members: 1, Configure: func(_ int, cfg *embed.Config) { cfg.MaxRequestBytes = 2 << 20 }})
	client := clientWith(t, c.Endpoints()[0], unknown)
	etcdtest.Fill(t, client, "a", 100, 10)
	large := strings.Repeat("x", 1<<20)
	for _, key := range strings.Split("bcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP", "") {
		if _, err := client.Put(t.Context(), "b"+key, large); err != nil {
			t.Fatal(err)
		}
	}
	keys, _, err := read(t.Context(), etcd.Reader{Client: client, Timeout: time.Minute}, &pb.RangeRequest{Key: []byte("a"), RangeEnd: []byte{0}}, nil)
	if err != nil || len(keys) != 141 {
		t.Errorf("%d keys, %v", len(keys), err)
	}
}

func TestReaderNamesTheRevisionThatWasCompacted(t *testing.T) {
	c := etcdtest.Start(t, embedded.Options{Members: 1})
	client := clientWith(t, c.Endpoints()[0], unknown)
	etcdtest.Fill(t, client, "k", 500, 10)
	compact := func() {
		resp, err := client.Put(t.Context(), "other", "x")
		if err == nil {
			_, err = client.Compact(t.Context(), resp.Header.Revision)
		}
		if err != nil {
			t.Error(err)
		}
	}
	_, _, err := read(t.Context(), etcd.Reader{Client: client, Timeout: time.Minute}, &pb.RangeRequest{Key: []byte("k"), RangeEnd: []byte("l")}, compact)
	if !errors.Is(err, rpctypes.ErrCompacted) || !strings.Contains(err.Error(), `the last key read is "k000015"`) {
		t.Errorf("error %v", err)
	}
}

// A stream that is running has its revision taken away like one that begins.
func TestReaderNamesTheRevisionThatWasCompactedInMidStream(t *testing.T) {
	c := etcdtest.Start(t, embedded.Options{Members: 1})
	for server, streams := range map[string]streams{"streams": nil, "pages": unknown} {
		t.Run(server, func(t *testing.T) {
			client := clientWith(t, c.Endpoints()[0], streams)
			etcdtest.Fill(t, client, "k", 4000, 10_000) // more than a server sends ahead
			var last string
			compacted := false
			err := (&etcd.Reader{Client: client, Timeout: time.Minute}).Read(t.Context(), &pb.RangeRequest{Key: []byte("k"), RangeEnd: []byte("l")}, etcd.Sink{
				Head: func(*pb.RangeResponse) error { return nil },
				Pairs: func(kvs []*mvccpb.KeyValue) error {
					first := last == ""
					last = string(kvs[len(kvs)-1].Key)
					if first || compacted {
						return nil // the head, or what was on its way
					}
					compacted = true
					resp, err := client.Put(t.Context(), "other", "x")
					if err == nil {
						_, err = client.Compact(t.Context(), resp.Header.Revision)
					}
					return err
				},
			})
			if !errors.Is(err, rpctypes.ErrCompacted) || !strings.Contains(err.Error(), fmt.Sprintf("the last key read is %q", last)) || last < "k000016" {
				t.Errorf("error %v, last key %q", err, last)
			}
		})
	}
}

// A learner has no streams, and answers serializable requests alone.
func TestReaderReadsALearner(t *testing.T) {
	var joining *embed.Config
	c := etcdtest.Start(t, embedded.Options{Members: 2, Configure: func(i int, cfg *embed.Config) {
		if i == 1 {
			joining = cfg
		}
	}})
	voter, learner := c.Members[0], c.Members[1]
	client := clientWith(t, voter.Endpoint(), nil)
	etcdtest.Fill(t, client, "k", 300, 10)
	// Where the removed one led, what reaches the other before it leads is lost.
	etcdtest.Until(t, "the second member is removed", func(ctx context.Context) bool {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		_, err := client.MemberRemove(ctx, learner.ID())
		return err == nil || errors.Is(err, rpctypes.ErrMemberNotFound)
	})
	learner.Stop()
	if err := os.RemoveAll(learner.DataDir()); err != nil {
		t.Fatal(err)
	}
	etcdtest.Until(t, "the learner is added", func(ctx context.Context) bool {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		_, err := client.MemberAddAsLearner(ctx, []string{learner.PeerURL()})
		return err == nil || errors.Is(err, rpctypes.ErrPeerURLExist)
	})
	joining.ClusterState = embed.ClusterStateFlagExisting
	if err := learner.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	req := &pb.RangeRequest{Key: []byte("k"), RangeEnd: []byte("l"), Serializable: true}
	etcdtest.Until(t, "the learner has all keys", func(ctx context.Context) bool {
		keys, _, err := read(ctx, etcd.Reader{Client: clientWith(t, learner.Endpoint(), nil), Timeout: time.Minute}, req, nil)
		return err == nil && len(keys) == 300
	})
}

func TestReaderGivesUpWhenNothingArrives(t *testing.T) {
	c := etcdtest.Start(t, embedded.Options{Members: 1})
	etcdtest.Fill(t, clientWith(t, c.Endpoints()[0], nil), "k", 100, 10)
	stuck := func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		if strings.HasSuffix(method, "RangeStream") {
			<-ctx.Done()
			return nil, status.FromContextError(ctx.Err()).Err()
		}
		return open(ctx, desc, cc, method, opts...)
	}
	client := clientWith(t, c.Endpoints()[0], stuck)
	_, _, err := read(t.Context(), etcd.Reader{Client: client, Timeout: 2 * time.Second}, &pb.RangeRequest{Key: []byte("k"), RangeEnd: []byte("l")}, nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}
