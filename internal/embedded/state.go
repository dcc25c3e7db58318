package embedded

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

// State is what a member holds at one revision.
type State struct {
	Keys            int64
	Hash            uint32 // as HashKV gives it
	CompactRevision int64
}

// StateAt returns what the member holds at a revision, without asking for
// anybody's rights: authentication may be on in data that was restored.
func (m *Member) StateAt(ctx context.Context, revision int64) (State, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.server == nil {
		return State{}, fmt.Errorf("look into member %s: it is stopped", m.cfg.Name)
	}
	kv := m.server.Server.KV()
	return Guard(m.failed, func() (State, error) { return stateAt(ctx, kv, revision) }, func(State) {})
}

func stateAt(ctx context.Context, kv mvcc.WatchableKV, revision int64) (State, error) {
	all, err := kv.Range(ctx, []byte{0}, []byte{}, mvcc.RangeOptions{Rev: revision, CountOnly: true})
	if err != nil {
		return State{}, fmt.Errorf("count keys: %w", err)
	}
	hash, _, err := kv.HashStorage().HashByRev(revision)
	if err != nil {
		return State{}, fmt.Errorf("hash keys: %w", err)
	}
	return State{Keys: int64(all.Count), Hash: hash.Hash, CompactRevision: hash.CompactRevision}, nil
}
