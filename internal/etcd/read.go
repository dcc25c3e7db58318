package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/etcdkit/etcdkit/internal/hint"
)

const (
	// headPairs is how many pairs the first request asks for: a small range is
	// read with it, and of a large one no more than a few values are held.
	headPairs = 16
	// pageBytes is the size aimed at for a page.
	pageBytes = 4 << 20
	// maxPageBytes is the size beyond which a page is refused and asked for
	// again with fewer keys.
	maxPageBytes = 4 * pageBytes
	// maxPagePairs bounds a page of tiny pairs.
	maxPagePairs = 50_000
	// pairOverhead is what a pair costs beyond its bytes.
	pairOverhead = 48
)

// Reader reads a range of any size in bounded memory and hands it on as it
// arrives: by the RangeStream request where the server has it, else by pages,
// always at one revision.
type Reader struct {
	Client *clientv3.Client
	// Timeout bounds the wait for the next bytes, not the whole.
	Timeout time.Duration
	// MaxRecvBytes bounds each message of the server, 0 does not.
	MaxRecvBytes int
	// StreamOnly asks for RangeStream even of small ranges, and fails where the
	// server does not have it.
	StreamOnly bool
}

// Sink takes what a Reader reads.
type Sink struct {
	// Head is called once and first. The response has no pairs, but the counts
	// are those of the whole.
	Head func(*pb.RangeResponse) error
	// Pairs is called with some pairs at a time, in order. They are the
	// callee's.
	Pairs func([]*mvccpb.KeyValue) error
}

// Readable reports whether a Reader can read req: the server sorts and filters
// only what it has in memory as a whole.
func Readable(req *pb.RangeRequest) bool {
	return len(req.RangeEnd) > 0 && !req.CountOnly &&
		req.SortOrder == pb.RangeRequest_NONE && req.SortTarget == pb.RangeRequest_KEY &&
		req.MinModRevision == 0 && req.MaxModRevision == 0 && req.MinCreateRevision == 0 && req.MaxCreateRevision == 0
}

// headOverhead is what the first request of a Reader adds to the user's own.
const headOverhead = 16

// Fits reports whether the first request of a Reader stays within the limit for
// requests wherever req does. Near the limit the request is made as it is, so
// that the limit hits what the user asked for.
func (c Config) Fits(req *pb.RangeRequest) bool {
	return proto.Size(req)+headOverhead <= c.sendLimit()
}

// RangeRequest returns the request behind a get operation, but for its order,
// which an operation does not show.
func RangeRequest(op clientv3.Op) *pb.RangeRequest {
	req := &pb.RangeRequest{
		Key: op.KeyBytes(), RangeEnd: op.RangeBytes(), Limit: op.Limit(), Revision: op.Rev(),
		Serializable: op.IsSerializable(), KeysOnly: op.IsKeysOnly(), CountOnly: op.IsCountOnly(),
		MinModRevision: op.MinModRev(), MaxModRevision: op.MaxModRev(),
		MinCreateRevision: op.MinCreateRev(), MaxCreateRevision: op.MaxCreateRev(),
	}
	return req
}

// Read reads the range that req, a Readable one, asks for.
func (r *Reader) Read(ctx context.Context, req *pb.RangeRequest, sink Sink) error {
	ctx, dog := watch(ctx, r.Timeout)
	defer dog.stop()
	run := &reading{
		Reader: r, sink: sink, kv: clientv3.RetryKVClient(r.Client), dog: dog,
		req: proto.Clone(req).(*pb.RangeRequest), // a clone is of the same type
	}
	err := run.all(ctx)
	if err == nil {
		return nil
	}
	return run.explain(ctx, err)
}

// reading is one call of Read. Its requests wait for a connection, as those of
// the client library do.
type reading struct {
	*Reader
	sink Sink
	kv   pb.KVClient
	dog  *watchdog

	req   *pb.RangeRequest // what is still to be read
	left  int64            // pairs still to come
	first []byte           // the first key of those read last
	last  []byte           // the last key read
	bytes int64            // of the pairs seen
	pairs int64
}

func (r *reading) all(ctx context.Context) error {
	if err := r.head(ctx); err != nil || r.left == 0 {
		return err
	}
	err := r.stream(ctx)
	switch {
	case err == nil && r.left == 0:
		return nil
	case r.StreamOnly && err != nil:
		return err
	case err != nil && !canGoOn(ctx, err):
		return err
	}
	return r.pages(ctx)
}

// canGoOn reports whether pages may succeed where a stream has failed: the
// server does not know the request, is a learner, or the connection broke.
func canGoOn(ctx context.Context, err error) bool {
	if errors.Is(rpctypes.Error(err), rpctypes.Error(rpctypes.ErrGRPCNotSupportedForLearner)) {
		return ctx.Err() == nil
	}
	switch status.Code(err) {
	case codes.Unimplemented, codes.Unavailable, codes.Internal, codes.Unknown:
		return ctx.Err() == nil
	}
	return false
}

// head asks for the first pairs. The answer also says how many there are and at
// which revision, which a stream only tells at its end.
func (r *reading) head(ctx context.Context) error {
	req := proto.Clone(r.req).(*pb.RangeRequest) // a clone is of the same type
	req.Limit = headPairs
	if r.StreamOnly {
		req.Limit = 1
	}
	if r.req.Limit > 0 {
		req.Limit = min(req.Limit, r.req.Limit)
	}
	resp, err := r.kv.Range(ctx, req, grpc.WaitForReady(true), r.atMost(math.MaxInt32))
	if err != nil {
		return err
	}
	r.dog.pat()
	r.left = resp.Count
	more := false
	if r.req.Limit > 0 && r.left > r.req.Limit {
		r.left, more = r.req.Limit, true
	}
	if err := r.sink.Head(&pb.RangeResponse{Header: resp.Header, Count: resp.Count, More: more}); err != nil {
		return err
	}
	if r.req.Revision == 0 {
		r.req.Revision = resp.Header.Revision
	}
	if r.StreamOnly {
		return nil
	}
	return r.take(resp.Kvs)
}

// take hands pairs on and notes how far the reading has come.
func (r *reading) take(kvs []*mvccpb.KeyValue) error {
	r.advance(kvs)
	r.dog.pause() // however slow the reader of our output is, the server is not to blame
	err := r.sink.Pairs(kvs)
	r.dog.pat()
	return err
}

// advance notes how far the reading has come.
func (r *reading) advance(kvs []*mvccpb.KeyValue) {
	r.dog.pat()
	if len(kvs) == 0 {
		return
	}
	r.first = kvs[0].Key
	r.last = kvs[len(kvs)-1].Key
	r.left -= int64(len(kvs))
	r.pairs += int64(len(kvs))
	for _, kv := range kvs {
		r.bytes += int64(len(kv.Key) + len(kv.Value) + pairOverhead)
	}
	r.req.Key = append(append(make([]byte, 0, len(r.last)+1), r.last...), 0)
	if r.req.Limit > 0 {
		r.req.Limit = max(r.left, 1)
	}
}

func (r *reading) stream(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := r.kv.RangeStream(ctx, r.req, grpc.WaitForReady(true), unlimited(), r.atMost(math.MaxInt32))
	if err != nil {
		return err
	}
	for {
		resp, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := r.take(resp.GetRangeResponse().GetKvs()); err != nil {
			return &sinkError{err}
		}
	}
}

// sinkError keeps a failure to write from looking like one of the server.
type sinkError struct{ error }

func (e *sinkError) Unwrap() error { return e.error }

// unlimited lifts the limit for requests from those that follow the first one:
// they hold keys of the data, which the user did not choose.
func unlimited() grpc.CallOption { return grpc.MaxCallSendMsgSize(math.MaxInt32) }

// atMost bounds a message by the smaller of limit and the user's.
func (r *reading) atMost(limit int) grpc.CallOption {
	if r.MaxRecvBytes > 0 {
		limit = min(limit, r.MaxRecvBytes)
	}
	return grpc.MaxCallRecvMsgSize(limit)
}

// pageLimit is how many bytes of a page of so many pairs are accepted. One pair
// may be as large as it is.
func pageLimit(pairs int64) int {
	if pairs == 1 {
		return math.MaxInt32
	}
	return maxPageBytes
}

// tooLarge reports whether the answer was longer than this client accepts.
func tooLarge(err error) bool {
	s, ok := status.FromError(err)
	return ok && s.Code() == codes.ResourceExhausted && strings.Contains(s.Message(), "larger than max")
}

// pageSize returns how many pairs to ask for next, by the size of those seen.
// It grows by degrees: the next pairs may be larger.
func (r *reading) pageSize(now int64) int64 {
	average := max(r.bytes/max(r.pairs, 1), 1)
	return max(min(pageBytes/average, 8*now, maxPagePairs), 1)
}

// behind reports whether a member asked for its own view has not seen the
// revision yet that another one answered with.
func (r *reading) behind(err error) bool {
	return r.req.Serializable && r.last != nil && errors.Is(rpctypes.Error(err), rpctypes.ErrFutureRev)
}

// explain turns an error of the transport into one of the client library, and
// says how far the reading had come when the server dropped its revision.
func (r *reading) explain(ctx context.Context, err error) error {
	var sink *sinkError
	switch {
	case errors.As(err, &sink):
		return sink.error
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return context.DeadlineExceeded
	}
	err = clientv3.ContextError(ctx, err)
	if errors.Is(err, rpctypes.ErrCompacted) && r.last != nil {
		return hint.With(fmt.Errorf("%w: revision %d was compacted while it was being read, the last key read is %q", err, r.req.Revision, r.last),
			"what was printed is whole up to that key; read again, or compact less often")
	}
	return err
}

// CollectStream asks for a range by RangeStream and returns it as one response.
// maxRecvBytes bounds each message, 0 does not.
func CollectStream(ctx context.Context, client *clientv3.Client, req *pb.RangeRequest, maxRecvBytes int) (*pb.RangeResponse, error) {
	if maxRecvBytes == 0 {
		maxRecvBytes = math.MaxInt32
	}
	stream, err := clientv3.RetryKVClient(client).RangeStream(ctx, req, grpc.WaitForReady(true), grpc.MaxCallRecvMsgSize(maxRecvBytes))
	if err != nil {
		return nil, clientv3.ContextError(ctx, err)
	}
	whole := &pb.RangeResponse{}
	for {
		part, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return whole, nil
		case err != nil:
			return nil, clientv3.ContextError(ctx, err)
		}
		proto.Merge(whole, part.GetRangeResponse())
	}
}
