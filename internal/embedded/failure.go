package embedded

import (
	"fmt"
	"runtime"
	"sync"

	"go.uber.org/zap/zapcore"
)

// Failure keeps the first error that a member could not go on with, a full
// disk for example. etcd ends its process then, or panics; here only the
// goroutine ends, for the process is somebody's command.
type Failure struct {
	once sync.Once
	done chan struct{} // closed when err is set
	err  error
}

// NewFailure returns a failure that has not happened. It is a hook for fatal lines
// and panics of a logger.
func NewFailure() *Failure { return &Failure{done: make(chan struct{})} }

// OnWrite runs after a line of level fatal or panic was logged.
func (f *Failure) OnWrite(line *zapcore.CheckedEntry, fields []zapcore.Field) {
	f.once.Do(func() {
		f.err = fmt.Errorf("etcd: %s", line.Message)
		for _, field := range fields {
			if cause, ok := field.Interface.(error); ok && field.Type == zapcore.ErrorType {
				f.err = fmt.Errorf("etcd: %s: %w", line.Message, cause)
			}
		}
		close(f.done)
	})
	runtime.Goexit()
}

// Guard calls what etcd may end the goroutine of, in a goroutine of its own.
// Members share a failure, so that one's may be the end of another's call: what
// that still returns goes to discard.
func Guard[T any](f *Failure, call func() (T, error), discard func(T)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result)
	go func() {
		value, err := call()
		select {
		case done <- result{value, err}:
		case <-f.done:
			if err == nil {
				discard(value)
			}
		}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-f.done:
		var none T
		return none, f.err
	}
}
