package embedded

import (
	"fmt"
	"runtime"
	"sync"

	"go.uber.org/zap/zapcore"
)

// failure keeps the first error that a member could not go on with, a full
// disk for example. etcd ends its process then, or panics; here only the
// goroutine ends, for the process is somebody's command.
type failure struct {
	once sync.Once
	done chan struct{} // closed when err is set
	err  error
}

func newFailure() *failure { return &failure{done: make(chan struct{})} }

// OnWrite runs after a line of level fatal or panic was logged.
func (f *failure) OnWrite(line *zapcore.CheckedEntry, fields []zapcore.Field) {
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

// guard calls what etcd may end the goroutine of, in a goroutine of its own.
// Members share a failure, so that one's may be the end of another's call: what
// that still returns goes to discard.
func guard[T any](f *failure, call func() (T, error), discard func(T)) (T, error) {
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
