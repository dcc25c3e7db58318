package embedded

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/etcdkit/etcdkit/internal/dirfd"
)

// failedGrace is how long a member that has failed may take to stop.
const failedGrace = 2 * time.Second

// Member is one server of a Cluster. It can be stopped and started again on
// the same data directory and ports.
type Member struct {
	cfg    *embed.Config
	parent *dirfd.Dir // of the data directory
	failed *Failure

	mu     sync.Mutex
	server *embed.Etcd // nil while stopped
}

// Name returns the member's name, as in member list.
func (m *Member) Name() string { return m.cfg.Name }

// Endpoint returns the member's client URL.
func (m *Member) Endpoint() string { return m.cfg.AdvertiseClientUrls[0].String() }

// PeerURL returns the URL under which other members reach this one.
func (m *Member) PeerURL() string { return m.cfg.AdvertisePeerUrls[0].String() }

// DataDir returns the member's data directory.
func (m *Member) DataDir() string {
	if below, ok := strings.CutPrefix(m.cfg.Dir, m.parent.Through()); ok {
		return m.parent.Path() + below
	}
	return m.cfg.Dir
}

// ID returns the member's id, or 0 while it is stopped.
func (m *Member) ID() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.server == nil {
		return 0
	}
	return uint64(m.server.Server.MemberID())
}

// Start starts the member and waits until it serves, until ctx ends, or until
// the server gives up.
func (m *Member) Start(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.server != nil {
		return fmt.Errorf("start member %s: already running", m.cfg.Name)
	}
	cfg := *m.cfg
	server, err := Guard(m.failed, func() (*embed.Etcd, error) { return embed.StartEtcd(&cfg) }, m.close)
	if err != nil {
		return fmt.Errorf("start member %s: %w", m.cfg.Name, m.parent.Named(err))
	}
	select {
	case <-server.Server.ReadyNotify():
		m.server = server
		return nil
	case <-server.Server.StopNotify():
		err = errors.New("the server stopped")
	case err = <-server.Err():
	case <-m.failed.done:
		err = m.failed.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	m.close(server)
	return fmt.Errorf("start member %s: %w", m.cfg.Name, m.parent.Named(err))
}

// Stop stops the member at once, without handing leadership on. Its data
// directory stays.
func (m *Member) Stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.server == nil {
		return
	}
	m.close(m.server)
	m.server = nil
}

// close stops a server. One that has failed may hold locks for ever.
func (m *Member) close(server *embed.Etcd) {
	closed := make(chan struct{})
	go func() {
		defer close(closed) // also where it fails only now
		server.Server.HardStop()
		server.Close()
	}()
	select {
	case <-closed:
	case <-m.failed.done:
		select {
		case <-closed:
		case <-time.After(failedGrace):
		}
	}
}
