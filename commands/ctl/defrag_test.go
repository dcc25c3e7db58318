package ctl

import (
	"context"
	"io"
	"testing"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/etcd"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

// The server goes on whatever its client does, so nothing may follow before.
func TestASignalWaitsForTheMemberThatDefragments(t *testing.T) {
	t.Parallel()
	endpoint := etcdtest.Start(t, embedded.Options{Members: 1}).Endpoints()[0]
	for name, tc := range map[string]struct {
		dialect cli.Dialect
		done    bool
	}{"natively": {cli.Native, true}, "as etcdctl": {cli.Upstream, false}} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		tr := &tree{App: app.New("test", tc.dialect, &cli.Env{Out: io.Discard, Err: io.Discard})}
		err := tr.defragOne(ctx, etcd.Config{Endpoints: []string{endpoint}}, &defragged{Endpoint: endpoint}, 0)
		if (err == nil) != tc.done {
			t.Errorf("%s: %v, want done %t", name, err, tc.done)
		}
	}
}
