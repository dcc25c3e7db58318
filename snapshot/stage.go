package snapshot

import (
	"context"
	"fmt"
	"io"

	"golang.org/x/time/rate"
)

// limitBurst is how much goes out at once under a rate limit.
const limitBurst = 256 << 10

// staged hands src to put: directly, or by way of a file, so that etcd's stream
// ends before a slow upload does.
func (o SaveOptions) staged(ctx context.Context, src io.Reader, put func(context.Context, io.Reader) error) error {
	if o.Stage == "" {
		return put(ctx, o.limited(ctx, src))
	}
	file := &decoded{dir: o.Stage, flag: "--stage"}
	defer file.remove()
	if err := file.fill(src); err != nil {
		return fmt.Errorf("stage in %s: %w", o.Stage, err)
	}
	return put(ctx, o.limited(ctx, io.NewSectionReader(file.file, 0, file.size)))
}

func (o SaveOptions) limited(ctx context.Context, src io.Reader) io.Reader {
	if o.LimitUpload <= 0 {
		return src
	}
	return &limited{ctx: ctx, src: src, limit: rate.NewLimiter(rate.Limit(o.LimitUpload), limitBurst)}
}

// limited reads no faster than its limit.
type limited struct {
	ctx   context.Context // belongs to the one reading
	src   io.Reader
	limit *rate.Limiter
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.src.Read(p[:min(len(p), limitBurst)])
	if waitErr := l.limit.WaitN(l.ctx, n); waitErr != nil && err == nil {
		err = context.Cause(l.ctx)
		if err == nil {
			err = waitErr
		}
	}
	return n, err
}
