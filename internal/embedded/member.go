package embedded

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.etcd.io/etcd/server/v3/embed"
)

// Member is one server of a Cluster. It can be stopped and started again on
// the same data directory and ports.
type Member struct {
	cfg *embed.Config

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
func (m *Member) DataDir() string { return m.cfg.Dir }

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
	server, err := embed.StartEtcd(&cfg)
	if err != nil {
		return fmt.Errorf("start member %s: %w", m.cfg.Name, err)
	}
	select {
	case <-server.Server.ReadyNotify():
		m.server = server
		return nil
	case <-server.Server.StopNotify():
		err = errors.New("the server stopped")
	case err = <-server.Err():
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	server.Close()
	return fmt.Errorf("start member %s: %w", m.cfg.Name, err)
}

// Stop stops the member at once, without handing leadership on. Its data
// directory stays.
func (m *Member) Stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.server == nil {
		return
	}
	m.server.Server.HardStop()
	m.server.Close()
	m.server = nil
}
