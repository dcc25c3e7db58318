package etcd

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
)

// giveUpAfter is how long a new client keeps trying when no endpoint accepts a
// connection: enough for a member that is just restarting its listener, and
// within the second that a person waits without wondering.
const giveUpAfter = 700 * time.Millisecond

// NoConnectionError says that no endpoint could be connected to. It hides its
// cause from errors.As on purpose: the client would find the status in it and
// go on retrying.
type NoConnectionError struct{ Cause error }

func (e *NoConnectionError) Error() string { return "no connection: " + connectionCause(e.Cause) }

// failFast ends the first requests of a client that cannot connect, which would
// otherwise wait for their deadline. A client that was connected once is left
// alone: a cluster that restarts under a long command comes back.
type failFast struct {
	patience  time.Duration // with a connection that fails
	connected atomic.Bool
}

func (f *failFast) unary(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	if f.connected.Load() {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go f.watch(ctx, cc, cancel)
	err := invoke(ctx, method, req, reply, cc, opts...)
	return f.judge(ctx, err)
}

func (f *failFast) stream(
	ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	if f.connected.Load() {
		return open(ctx, desc, cc, method, opts...)
	}
	ctx, cancel := context.WithCancelCause(ctx) // ends with the stream's own context
	go f.watch(ctx, cc, cancel)
	s, err := open(ctx, desc, cc, method, opts...)
	if err != nil {
		err = f.judge(ctx, err)
		cancel(err)
		return nil, err
	}
	f.connected.Store(true)
	return s, nil
}

// watch gives up on a connection that fails for too long without a break.
// It ends with ctx, or when a connection stands.
func (f *failFast) watch(ctx context.Context, cc *grpc.ClientConn, giveUp context.CancelCauseFunc) {
	var failing <-chan time.Time
	for {
		state := cc.GetState()
		switch {
		case state == connectivity.Ready || f.connected.Load():
			return
		case state == connectivity.TransientFailure && failing == nil:
			failing = time.After(f.patience)
		}
		changed := make(chan bool, 1)
		go func() { changed <- cc.WaitForStateChange(ctx, state) }()
		select {
		case <-failing:
			giveUp(&NoConnectionError{})
			return
		case ok := <-changed:
			if !ok {
				return
			}
		}
	}
}

// judge replaces the error of a request that watch ended.
func (f *failFast) judge(ctx context.Context, err error) error {
	if err == nil {
		f.connected.Store(true)
		return nil
	}
	if _, gaveUp := context.Cause(ctx).(*NoConnectionError); gaveUp { //nolint:errorlint // the cause is set above, unwrapped
		return &NoConnectionError{Cause: err}
	}
	return err
}

// connectionCause returns the innermost words of grpc's connection errors,
// which nest their causes in quotes.
func connectionCause(err error) string {
	text := err.Error()
	if s, ok := status.FromError(err); ok {
		text = s.Message()
	}
	const mark = "desc = \""
	if i := strings.LastIndex(text, mark); i >= 0 {
		return strings.TrimSuffix(text[i+len(mark):], "\"")
	}
	return text
}
