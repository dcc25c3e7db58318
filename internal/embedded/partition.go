package embedded

import "go.etcd.io/etcd/client/pkg/v3/types"

// Isolate cuts the member off from the others, in both directions, while its
// clients still reach it: a partition of the network between members.
func (c *Cluster) Isolate(m *Member) { c.links(m, true) }

// Rejoin ends what Isolate did.
func (c *Cluster) Rejoin(m *Member) { c.links(m, false) }

func (c *Cluster) links(m *Member, cut bool) {
	for _, other := range c.Members {
		if other != m {
			m.link(other.ID(), cut)
			other.link(m.ID(), cut)
		}
	}
}

// link cuts or mends what the member sends to a peer and takes from it.
func (m *Member) link(peer uint64, cut bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.server == nil || peer == 0:
	case cut:
		m.server.Server.CutPeer(types.ID(peer))
	default:
		m.server.Server.MendPeer(types.ID(peer))
	}
}
