package etcd

import (
	"context"
	"errors"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

const (
	// refusedAfter is how long an endpoint that refuses connections is tried
	// when it is only asked for its cluster.
	refusedAfter = 100 * time.Millisecond
	// answerGrace is how long the other endpoints may take once the first has
	// named its cluster.
	answerGrace = time.Second
)

// Clusters asks all endpoints at once for the ids of their clusters. An
// endpoint that does not answer, or not soon after the first that does, is
// missing in the result. It returns an error if every one that could be
// connected to stayed silent until ctx ended.
func Clusters(ctx context.Context, c Config) (map[string]uint64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	found := map[string]uint64{}
	var mu sync.Mutex
	var silent error
	var wg sync.WaitGroup
	for _, ep := range c.Endpoints {
		wg.Go(func() {
			id, err := ClusterAt(ctx, c.At(ep))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && len(found) == 0:
				time.AfterFunc(answerGrace, cancel)
				fallthrough
			case err == nil:
				found[ep] = id
			case errors.Is(err, context.DeadlineExceeded):
				silent = err
			}
		})
	}
	wg.Wait()
	if len(found) == 0 {
		return nil, silent
	}
	return found, nil
}

// ClusterAt returns the id of the cluster that answers at the only endpoint of
// c. A password is sent only where the server wants one for that: a login is a
// proposal to its cluster.
func ClusterAt(ctx context.Context, c Config) (uint64, error) {
	bare := c
	bare.Auth = Auth{}
	id, err := clusterAt(ctx, bare)
	if err != nil && ctx.Err() == nil && c.Auth != (Auth{}) {
		return clusterAt(ctx, c)
	}
	return id, err
}

func clusterAt(ctx context.Context, c Config) (uint64, error) {
	c.FailFast = false
	cfg, err := c.Client()
	if err != nil {
		return 0, err
	}
	f := &failFast{patience: refusedAfter}
	cfg.DialOptions = append(cfg.DialOptions, grpc.WithChainUnaryInterceptor(f.unary))
	cfg.Context = ctx
	client, err := clientv3.New(cfg)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	status, err := client.Status(ctx, c.Endpoints[0])
	if err != nil {
		return 0, errors.Join(err, ctx.Err())
	}
	return status.Header.GetClusterId(), nil
}
