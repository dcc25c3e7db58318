package health

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	defaultStallTimeout = 30 * time.Second
	lifeInterval        = time.Second
)

// Attended runs a long request and asks the member for signs of life
// meanwhile, through a read that needs neither quorum nor the database: a
// member that defragments answers nothing else. The request is given up when
// none came for stall; 0 means 30 s.
func Attended(ctx context.Context, client Client, stall time.Duration, request func(context.Context) error) error {
	if stall <= 0 {
		stall = defaultStallTimeout
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan error, 1)
	go func() { done <- request(ctx) }()
	ticker := time.NewTicker(min(lifeInterval, stall/4))
	defer ticker.Stop()
	alive := time.Now()
	for {
		select {
		case err := <-done:
			if cause := context.Cause(ctx); err != nil && cause != nil {
				return cause
			}
			return err
		case <-ticker.C:
			if lives(ctx, client, stall) {
				alive = time.Now()
			}
			if since := time.Since(alive); since >= stall {
				cancel(fmt.Errorf("no sign of life for %s", since.Round(time.Second)))
			}
		}
	}
}

func lives(ctx context.Context, client Client, within time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, within/2)
	defer cancel()
	_, err := client.MemberList(ctx, clientv3.WithSerializable())
	return err == nil || refused(err)
}
