package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
)

// EndOn returns the context of a program that ends in order: a signal ends the
// context, and with it what waits for the user. Without it a signal kills.
func (e *Env) EndOn(parent context.Context) (ctx context.Context, stop context.CancelFunc) {
	ctx, stop = parent, func() {}
	if e.Notify != nil {
		surviveBrokenPipes()
		ctx, stop = e.Notify(parent, Endings()...)
	}
	e.ending = ctx
	return ctx, stop
}

// Heed returns a context that one of the signals ends, for a command of a
// program that a signal kills otherwise.
func (e *Env) Heed(parent context.Context, signals ...os.Signal) (ctx context.Context, stop context.CancelFunc) {
	if e.Notify == nil {
		return parent, func() {}
	}
	return e.Notify(parent, signals...)
}

// Input is standard input for those who may be interrupted while they wait for
// it.
func (e *Env) Input() io.Reader { return input{e} }

// ReadLine reads a line of standard input, and not a byte of what follows.
func (e *Env) ReadLine() (string, error) {
	line, err := readLine(e.Input())
	if errors.Is(err, io.EOF) && line != "" {
		err = nil
	}
	return strings.TrimSuffix(line, "\r"), err
}

type input struct{ env *Env }

func (i input) Read(p []byte) (int, error) {
	buffer := make([]byte, len(p)) // its reader may outlive this call
	n, err := Interruptible(i.env, func() (int, error) { return i.env.In.Read(buffer) })
	copy(p, buffer[:n])
	return n, err
}

// Interruptible returns what wait returns, or the signal that comes before.
// Nobody waits for wait then, the process is about to end.
func Interruptible[T any](e *Env, wait func() (T, error)) (T, error) {
	if e.ending == nil {
		return wait()
	}
	return until(e.ending, wait)
}

func until[T any](ctx context.Context, wait func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := wait()
		done <- outcome{value, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}
