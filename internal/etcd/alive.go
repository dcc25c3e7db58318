package etcd

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// WhileAnswering returns a context for one long request. It ends when none of
// the client's endpoints has answered a status request for timeout.
func WhileAnswering(ctx context.Context, client *clientv3.Client, timeout time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		answered := time.Now()
		for ctx.Err() == nil {
			if anyAnswers(ctx, client, timeout/6) {
				answered = time.Now()
			}
			if silent := time.Since(answered); silent > timeout {
				cancel(fmt.Errorf("no endpoint has answered for %s: %w", silent.Round(time.Second), context.DeadlineExceeded))
			}
			select {
			case <-ctx.Done():
			case <-time.After(timeout / 6):
			}
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}

func anyAnswers(ctx context.Context, client *clientv3.Client, timeout time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for _, endpoint := range client.Endpoints() {
		if _, err := client.Status(ctx, endpoint); err == nil {
			return true
		}
	}
	return false
}
