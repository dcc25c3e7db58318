// Package sample makes keyspaces that look like a Kubernetes control plane's:
// for the playground, and for tests and benchmarks that need one. The same seed
// gives the same objects.
package sample

import (
	"context"
	"fmt"
	"math/rand/v2"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Prefix is where kube-apiserver keeps its objects by default.
const Prefix = "/registry"

// Object is one key of a keyspace.
type Object struct {
	Key   string
	Value []byte
	// Encryption is the provider that a Secret is encrypted with, or "" for an
	// object in clear.
	Encryption string
}

// kind is one resource of a keyspace and how common it is.
type kind struct {
	apiVersion, name string
	path             string // below the prefix
	share            int    // in 1,000 objects
	valueBytes       int    // size of its spec and status
	namespaced       bool
	json             bool // custom resources are stored as JSON
}

// kinds returns what a control plane holds, roughly as often as it does.
func kinds() []kind {
	return []kind{
		{"v1", "Pod", "pods", 200, 2400, true, false},
		{"events.k8s.io/v1", "Event", "events", 300, 500, true, false},
		{"apps/v1", "ReplicaSet", "replicasets", 90, 1200, true, false},
		{"apps/v1", "Deployment", "deployments", 60, 1200, true, false},
		{"v1", "ConfigMap", "configmaps", 80, 900, true, false},
		{"v1", "ServiceAccount", "serviceaccounts", 50, 60, true, false},
		{"discovery.k8s.io/v1", "EndpointSlice", "endpointslices", 50, 400, true, false},
		{"coordination.k8s.io/v1", "Lease", "leases", 40, 100, true, false},
		{"v1", "Node", "minions", 10, 4000, false, false},
		{"example.com/v1", "Widget", "example.com/widgets", 20, 300, true, true},
		{"v1", "Secret", "secrets", 100, 0, true, false},
	}
}

// Objects returns n objects, in an order that mixes all kinds. One Secret in
// three is in clear, the others are encrypted by Keys.
func Objects(n int, seed uint64) ([]Object, error) {
	g := generator{rand: rand.New(rand.NewPCG(seed, seed)), keys: Keys(seed)}
	weighted := make([]kind, 0, 1000)
	for _, k := range kinds() {
		for range k.share {
			weighted = append(weighted, k)
		}
	}
	g.rand.Shuffle(len(weighted), func(i, j int) { weighted[i], weighted[j] = weighted[j], weighted[i] })
	objects := make([]Object, n)
	for i := range objects {
		var err error
		if objects[i], err = g.object(weighted[i%len(weighted)], i); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

// batch is how many objects go into one transaction: etcd's default limit of
// operations is 128.
const batch = 100

// Fill writes the objects to a cluster.
func Fill(ctx context.Context, kv clientv3.KV, objects []Object) error {
	for start := 0; start < len(objects); start += batch {
		var ops []clientv3.Op
		for _, o := range objects[start:min(start+batch, len(objects))] {
			ops = append(ops, clientv3.OpPut(o.Key, string(o.Value)))
		}
		if _, err := kv.Txn(ctx).Then(ops...).Commit(); err != nil {
			return fmt.Errorf("fill with sample objects: %w", err)
		}
	}
	return nil
}
