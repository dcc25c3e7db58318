package snapshot

import (
	"bytes"
	"slices"
	"sync"

	"github.com/etcdkit/etcdkit/internal/kube"
	"github.com/etcdkit/etcdkit/internal/mvccdb"
)

// keyWatch is what a restore notices about the keys that pass by. What it found
// in the end does not depend on the order in which batches came.
type keyWatch struct {
	mu     sync.Mutex
	finder kube.Finder
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

func newKeyWatch() *keyWatch { return &keyWatch{leases: make(map[string]leaseKey)} }

// watch looks at a batch. It runs on all cores at once.
func (s *keyWatch) watch(b *mvccdb.Batch) {
	if b.Bucket != mvccdb.KeyBucket || len(b.Records) == 0 {
		return
	}
	finder := findPrefixes(b)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finder.Merge(finder)
	for i := range b.Records {
		if r := &b.Records[i]; bytes.Contains(r.Key, []byte(masterLeases)) {
			s.lease(r)
		}
	}
}

// findPrefixes returns what the values of a batch say about Kubernetes'
// prefixes. A deletion says nothing: it has no value.
func findPrefixes(b *mvccdb.Batch) *kube.Finder {
	var finder kube.Finder
	for i := range b.Records {
		if r := &b.Records[i]; !r.Tombstone {
			finder.Add(r.Key, r.Value)
		}
	}
	return &finder
}

func (s *keyWatch) lease(r *mvccdb.Record) {
	before, ok := s.leases[string(r.Key)]
	later := r.Rev.Main > before.rev.Main || (r.Rev.Main == before.rev.Main && r.Rev.Sub > before.rev.Sub)
	if !ok || later {
		s.leases[string(r.Key)] = leaseKey{rev: r.Rev, gone: r.Tombstone}
	}
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
