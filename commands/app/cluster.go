package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/etcdkit/etcdkit/health"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/etcd"
)

// Doors returns the ways to look at the cluster that the flags mean, and its
// endpoints.
func (a *App) Doors(ctx context.Context, metricsURLs []string) (health.Doors, []string, error) {
	conn, err := a.Connection()
	if err != nil {
		return health.Doors{}, nil, err
	}
	cfg, err := conn.Client()
	if err != nil {
		return health.Doors{}, nil, etcd.Diagnose(ctx, conn, err)
	}
	transport := &http.Transport{TLSClientConfig: cfg.TLS, DisableKeepAlives: true, DialContext: conn.DialContext}
	return health.Doors{
		Dial: func(ctx context.Context, endpoint string) (health.Client, error) {
			return a.Dial(ctx, conn.At(endpoint))
		},
		Final: func(err error) bool { return errors.Is(err, cli.ErrGuard) || errors.Is(err, cli.ErrUsage) },
		Explain: func(ctx context.Context, endpoint string, err error) error {
			return etcd.Diagnose(ctx, conn.At(endpoint), err)
		},
		Scrape:    health.Scraper(&http.Client{Transport: transport}, metricsURLs),
		Handshake: health.Handshaker(cfg.TLS, conn.DialContext),
		Now:       a.Now,
	}, conn.Endpoints, nil
}

// Tools returns the ways to change the cluster that the flags mean, and its
// endpoints. Work that a server has begun is waited for, so their clients
// outlive a signal.
func (a *App) Tools(ctx context.Context, metricsURLs []string) (health.Tools, []string, error) {
	doors, endpoints, err := a.Doors(ctx, metricsURLs)
	if err != nil {
		return health.Tools{}, nil, err
	}
	conn, err := a.Connection()
	if err != nil {
		return health.Tools{}, nil, err
	}
	lasting := context.WithoutCancel(ctx)
	return health.Tools{
		Doors: doors,
		Operate: func(_ context.Context, endpoint string) (health.Operator, error) {
			return a.Dial(lasting, conn.At(endpoint))
		},
		Lock: func(ctx context.Context, ttl time.Duration) (health.Lock, error) {
			client, err := a.Dial(lasting, conn)
			if err != nil {
				return nil, err
			}
			lock, err := health.AcquireLock(ctx, client, ttl)
			if err != nil {
				return nil, errors.Join(err, client.Close())
			}
			return clientLock{lock, client}, nil
		},
		LocalLock: a.localLock, LocalLockFree: a.localLockFree,
		Starting: func(action, member string) { a.Note("%s", strings.TrimSpace(action+" "+member)) },
	}, endpoints, nil
}

// clientLock closes the lock's client with it.
type clientLock struct {
	health.Lock
	client io.Closer
}

func (l clientLock) Release(ctx context.Context) error {
	return errors.Join(l.Lock.Release(ctx), l.client.Close())
}

// TellPromotion returns a function that tells how far a learner is, whenever
// that has changed.
func (a *App) TellPromotion() func(health.Promotion) {
	last := ""
	return func(p health.Promotion) {
		text := "waiting for the new member to be started"
		if p.Started {
			text = fmt.Sprintf("the new member is %d entries behind", p.Behind)
		}
		if text != last {
			a.Note("%s", text)
		}
		last = text
	}
}

// Judged gives the sentinels of package health their exit codes.
func Judged(err error) error {
	switch {
	case errors.Is(err, health.ErrNoMember), errors.Is(err, health.ErrAmbiguous), errors.Is(err, health.ErrTwoClusters):
		return cli.Usage(err)
	case errors.Is(err, health.ErrUnhealthy), errors.Is(err, health.ErrDiffers):
		return cli.Verdict(err)
	case errors.Is(err, health.ErrUnknown), errors.Is(err, health.ErrNotCompared):
		return cli.CannotTell(err)
	case errors.Is(err, health.ErrRefused), errors.Is(err, health.ErrLocked):
		return cli.Guard(err)
	}
	return err
}
