package etcd

import (
	"bytes"
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// pages reads the rest page by page, one of them ahead: while the server looks
// for the next page, the last one is printed.
func (r *reading) pages(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	pages := make(chan []*mvccpb.KeyValue)
	fetched := make(chan error, 1)
	go func() {
		defer close(pages)
		fetched <- r.fetch(ctx, pages)
	}()
	var failed error
	for kvs := range pages {
		if failed != nil {
			continue // until the other side has seen that nobody listens
		}
		if failed = r.sink.Pairs(kvs); failed != nil {
			cancel()
		}
	}
	cancel()
	if err := <-fetched; failed == nil {
		return err
	}
	return &sinkError{failed}
}

// fetch asks for page after page and passes them on.
func (r *reading) fetch(ctx context.Context, pages chan<- []*mvccpb.KeyValue) error {
	size := r.pageSize(headPairs)
	w := newWindow(r.req.RangeEnd, r.first, r.last)
	for r.left > 0 {
		limit, end := min(size, r.left), w.next(r.req.Key)
		resp, err := r.page(ctx, limit, end, size)
		if err != nil {
			return err
		}
		if resp == nil { // it was too large
			size = max(size/8, 1)
			continue
		}
		r.advance(resp.Kvs)
		r.dog.pause() // however slow the reader of our output is, the server is not to blame
		select {
		case pages <- resp.Kvs:
			r.dog.pat()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if !resp.More {
			if bytes.Equal(end, w.end) {
				return nil
			}
			r.req.Key = end
		}
		w.held(resp.Count, size)
		size = r.pageSize(size)
	}
	return nil
}

// page asks for the next page until the server has caught up with the revision.
// It returns nil when the page is larger than one of size pairs may be.
func (r *reading) page(ctx context.Context, limit int64, end []byte, size int64) (*pb.RangeResponse, error) {
	req := proto.Clone(r.req).(*pb.RangeRequest) // a clone is of the same type
	req.Limit, req.RangeEnd = limit, end
	for {
		resp, err := r.kv.Range(ctx, req, grpc.WaitForReady(true), unlimited(), r.atMost(pageLimit(size)))
		switch {
		case size > 1 && tooLarge(err):
			r.dog.pat()
			return nil, nil
		case !r.behind(err):
			return resp, err
		}
		if err := r.dog.sleep(ctx, 50*time.Millisecond); err != nil {
			return nil, err
		}
	}
}
