package ctl

import (
	"context"
	"errors"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/etcdkit/etcdkit/internal/cli"
)

// releaseTimeout bounds giving a lock or leadership back, when the cluster may
// be what has gone.
const releaseTimeout = 5 * time.Second

// inSession runs fn with a session whose lease is kept alive. The client
// outlives a signal, so that what is held can be given back. Upstream heeds two
// signals from here on.
func (t *tree) inSession(ctx context.Context, fn func(ctx context.Context, client *clientv3.Client, s *concurrency.Session) error, opts ...concurrency.SessionOption) error {
	clientCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	connected := context.AfterFunc(ctx, cancel) // before there is anything to give back
	client, err := t.client(clientCtx)
	if err != nil {
		return err
	}
	if !t.upstream() { // which ends with the client open: closing it would log what it cannot do any more
		defer cancel()
		defer client.Close()
	}
	s, err := concurrency.NewSession(client, opts...)
	if err != nil {
		return err
	}
	connected()
	if t.upstream() {
		ctx, stop := t.Heed(ctx, syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		return fn(ctx, client, s) // its lease runs out by itself
	}
	return errors.Join(fn(ctx, client, s), closeSession(s))
}

// closeSession revokes the session's lease, if there still is one.
func closeSession(s *concurrency.Session) error {
	select {
	case <-s.Done():
		return nil
	default:
		return s.Close()
	}
}

// release gives something back after ctx may have ended.
func release(ctx context.Context, free func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	return free(ctx)
}

// releaseAfter gives something back after err. Upstream leaves it until its
// lease runs out.
func (t *tree) releaseAfter(ctx context.Context, err error, free func(context.Context) error) error {
	if t.upstream() {
		return err
	}
	return errors.Join(err, release(ctx, free))
}

// notGot is the error of a wait for a lock or leadership. Upstream tells of a
// signal during it in the words of the context.
func (t *tree) notGot(ctx context.Context, err error) error {
	if t.upstream() && cli.Signal(context.Cause(ctx)) != syscall.SIGHUP {
		return &codeError{exitError, err}
	}
	return err
}

// ended tells how a signal that ended ctx is answered once all is given back.
// Upstream takes an interrupt as the regular end.
func (t *tree) ended(ctx context.Context) error {
	if t.upstream() && cli.Signal(context.Cause(ctx)) != syscall.SIGHUP {
		return nil
	}
	return context.Cause(ctx)
}
