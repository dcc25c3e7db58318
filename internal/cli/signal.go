package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// SignalError is the cause of a context that a signal ended.
type SignalError struct{ Signal syscall.Signal }

func (e *SignalError) Error() string { return "ended by signal: " + e.Signal.String() }

// repeatGrace is how long signals after the first are taken for its repeats:
// timeout(1) sends its signal twice, to the process and to its group.
const repeatGrace = time.Second

// Endings returns the signals that end a program: an interrupt, a quit, a
// termination and a dropped session, unless nohup(1) wants us to survive that.
// Left to Go's runtime, a quit would print stacks, end with the exit code of
// wrong usage, and leave locks and folders behind.
func Endings() []os.Signal {
	signals := []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// NotifyContext returns a context that one of the signals ends, with a
// *SignalError as its cause. A while after it, or after stop, a signal kills the
// process as usual.
func NotifyContext(parent context.Context, endings ...os.Signal) (ctx context.Context, stop context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, endings...)
	go func() {
		select {
		case s := <-signals:
			number, _ := s.(syscall.Signal)
			cancel(&SignalError{Signal: number})
			time.AfterFunc(repeatGrace, func() { signal.Stop(signals) })
		case <-ctx.Done():
		}
	}()
	return ctx, func() { signal.Stop(signals); cancel(context.Canceled) }
}

// surviveBrokenPipes makes writing to a broken pipe an error: a broken standard
// error must not kill an upload. Were the signal ignored instead, so would the
// commands that we run ignore it.
func surviveBrokenPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// Signal returns the signal that ended the work behind err, or 0.
func Signal(err error) syscall.Signal {
	if s, ok := errors.AsType[*SignalError](err); ok {
		return s.Signal
	}
	return 0
}
