package etcd

import (
	"context"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// giveUpAfter is how long a client keeps trying when it has no connection at
// all: enough for a member that is just restarting its listener, and within the
// second that a person waits without wondering.
const giveUpAfter = 700 * time.Millisecond

// NoConnectionError says that no endpoint could be connected to.
type NoConnectionError struct{ Cause error }

func (e *NoConnectionError) Error() string { return "no connection: " + connectionCause(e.Cause) }
func (e *NoConnectionError) Unwrap() error { return e.Cause }

// failFast sits below the client's own retries and sees each attempt fail. The
// client balances over all endpoints and reports a connection error only when
// it has none left; when that lasts, the error it returns is one that the
// retries let pass.
type failFast struct {
	mu    sync.Mutex
	since time.Time // when the present run of connection errors began
}

func (f *failFast) intercept(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	err := invoke(ctx, method, req, reply, cc, opts...)
	if !isConnectionError(err) {
		f.reset()
		return err
	}
	if f.lasted() < giveUpAfter {
		return err
	}
	return &NoConnectionError{Cause: err}
}

func (f *failFast) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.since = time.Time{}
}

func (f *failFast) lasted() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.since.IsZero() {
		f.since = time.Now()
	}
	return time.Since(f.since)
}

// isConnectionError reports whether the request never reached a server.
func isConnectionError(err error) bool {
	s, ok := status.FromError(err)
	return ok && s.Code() == codes.Unavailable && strings.Contains(s.Message(), "connection error")
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
