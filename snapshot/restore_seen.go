package snapshot

import (
	"bytes"
	"slices"
	"sync"

	"github.com/etcdkit/etcdkit/internal/kube"
	"github.com/etcdkit/etcdkit/internal/mvccdb"
)

// keyWatch is what a restore notices about the keys that pass by.
type keyWatch struct {
	mu     sync.Mutex
	finder kube.Finder
	found  bool
	leases map[string]leaseKey
}

// leaseKey is the last revision seen of an API server's lease key.
type leaseKey struct {
	rev  mvccdb.Revision
	gone bool
}

// masterLeases is the part of a key under which API servers announce
// themselves. After a restore the keys of dead ones live on.
const masterLeases = "/masterleases/"

// valueStart is as much of a value as tells its storage format.
const valueStart = 64

func newKeyWatch() *keyWatch { return &keyWatch{leases: make(map[string]leaseKey)} }

// watch looks at a batch. It runs on all cores at once.
func (s *keyWatch) watch(b *mvccdb.Batch) {
	if b.Bucket != mvccdb.KeyBucket || len(b.Records) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range b.Records {
		r := &b.Records[i]
		if !s.found {
			s.finder.Add(r.Key, r.Value[:min(len(r.Value), valueStart)])
		}
		if bytes.Contains(r.Key, []byte(masterLeases)) {
			s.lease(r)
		}
	}
	s.found = s.found || len(s.finder.Prefixes()) > 0
}

func (s *keyWatch) lease(r *mvccdb.Record) {
	before, ok := s.leases[string(r.Key)]
	later := r.Rev.Main > before.rev.Main || (r.Rev.Main == before.rev.Main && r.Rev.Sub > before.rev.Sub)
	if !ok || later {
		s.leases[string(r.Key)] = leaseKey{rev: r.Rev, gone: r.Tombstone}
	}
}

// sure reports whether the prefix is known.
func (s *keyWatch) sure() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.found
}

// prefix returns Kubernetes' prefix, "" where the keyspace is not its.
func (s *keyWatch) prefix() string {
	if all := s.finder.Prefixes(); len(all) > 0 {
		return all[0]
	}
	return ""
}

// stale returns the keys of API servers.
func (s *keyWatch) stale() []string {
	var keys []string
	for key, last := range s.leases {
		if !last.gone {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
