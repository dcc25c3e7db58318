package etcd

import (
	"context"
	"sync"
	"time"
)

// watchdog is a context that ends when nothing has happened for too long, as if
// by a deadline: what asks for its error is told so, and not of a cancellation.
type watchdog struct {
	context.Context // what it also ends with
	timer           *time.Timer
	timeout         time.Duration
	leave           func() bool // ends the wait for the other context

	once sync.Once
	done chan struct{}
	err  error // set before done is closed
}

// watch returns a context that ends, with context.DeadlineExceeded, when the
// watchdog was not patted for timeout. Zero means that it never does.
func watch(ctx context.Context, timeout time.Duration) (context.Context, *watchdog) {
	d := &watchdog{Context: ctx, timeout: timeout, done: make(chan struct{})}
	d.leave = context.AfterFunc(ctx, func() { d.end(ctx.Err()) })
	if timeout > 0 {
		d.timer = time.AfterFunc(timeout, func() { d.end(context.DeadlineExceeded) })
	}
	return d, d
}

func (d *watchdog) end(err error) {
	d.once.Do(func() {
		d.err = err
		close(d.done)
	})
}

// Done is part of context.Context.
func (d *watchdog) Done() <-chan struct{} { return d.done }

// Err is part of context.Context.
func (d *watchdog) Err() error {
	select {
	case <-d.done:
		return d.err
	default:
		return nil
	}
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
	d.leave()
	d.end(context.Canceled)
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
