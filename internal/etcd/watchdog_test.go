package etcd

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestAWatchdogEndsAsADeadlineDoes(t *testing.T) {
	ctx, dog := watch(t.Context(), time.Millisecond)
	defer dog.stop()
	derived, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	<-derived.Done()
	for name, got := range map[string]error{
		"its error": ctx.Err(), "its cause": context.Cause(ctx), "a derived error": derived.Err(), "a derived cause": context.Cause(derived),
	} {
		if !errors.Is(got, context.DeadlineExceeded) {
			t.Errorf("%s is %v, want %v", name, got, context.DeadlineExceeded)
		}
	}
}

func TestAWatchdogEndsWithItsCaller(t *testing.T) {
	parent, cancel := context.WithCancelCause(t.Context())
	ctx, dog := watch(parent, time.Hour)
	defer dog.stop()
	if err := ctx.Err(); err != nil {
		t.Fatalf("ended at once: %v", err)
	}
	cause := errors.New("somebody pressed Ctrl-C")
	cancel(cause)
	<-ctx.Done()
	if !errors.Is(ctx.Err(), context.Canceled) || !errors.Is(context.Cause(ctx), cause) {
		t.Errorf("error %v, cause %v; want canceled by %v", ctx.Err(), context.Cause(ctx), cause)
	}
}

func TestAPausedWatchdogLetsNothingEnd(t *testing.T) {
	ctx, dog := watch(t.Context(), 50*time.Millisecond)
	dog.pause()
	select {
	case <-ctx.Done():
		t.Error("ended while it was paused")
	case <-time.After(200 * time.Millisecond):
	}
	dog.pat()
	<-ctx.Done()
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Errorf("got %v, want that it is late", ctx.Err())
	}
}
