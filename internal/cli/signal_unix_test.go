//go:build !windows

package cli_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"

	"github.com/etcdkit/etcdkit/internal/cli"
)

func TestASignalEndsTheContextAndIsItsCause(t *testing.T) {
	ctx, stop := cli.NotifyContext(t.Context())
	defer stop()
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	if got := cli.Signal(fmt.Errorf("save: %w", context.Cause(ctx))); got != syscall.SIGHUP {
		t.Errorf("signal %v, want SIGHUP", got)
	}
}
