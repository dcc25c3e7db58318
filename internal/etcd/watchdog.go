package etcd

import (
	"context"
	"time"
)

// watchdog ends a context when nothing has happened for too long.
type watchdog struct {
	timer   *time.Timer
	timeout time.Duration
	cancel  context.CancelCauseFunc
}

// watch returns a context that ends, with context.DeadlineExceeded as its cause,
// when the watchdog was not patted for timeout. Zero means that it never does.
func watch(ctx context.Context, timeout time.Duration) (context.Context, *watchdog) {
	ctx, cancel := context.WithCancelCause(ctx)
	d := &watchdog{timeout: timeout, cancel: cancel}
	if timeout > 0 {
		d.timer = time.AfterFunc(timeout, func() { cancel(context.DeadlineExceeded) })
	}
	return ctx, d
}

// pat says that something has happened.
func (d *watchdog) pat() {
	if d.timer != nil {
		d.timer.Reset(d.timeout)
	}
}

// pause stops the clock until the next pat.
func (d *watchdog) pause() {
	if d.timer != nil {
		d.timer.Stop()
	}
}

func (d *watchdog) stop() {
	d.pause()
	d.cancel(context.Canceled)
}

// sleep waits without counting as something that happened.
func (d *watchdog) sleep(ctx context.Context, pause time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(pause):
		return nil
	}
}
