// Package gendb writes large etcd snapshot files for benchmarks and tests. It
// fills etcd's own store without a server around it: a million keys of 1 KiB
// take about 15 seconds.
package gendb

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"

	"github.com/coreos/go-semver/semver"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"
)

// Options says what is in the file.
type Options struct {
	Keys        int
	ValueBytes  int
	Rewrites    int    // how often each key is written anew: history
	SecretEvery int    // every so many keys one is a Secret, one in three of them in clear; 0 means none
	Seed        uint64 // other seeds make other values
	NoTrailer   bool   // leave the SHA-256 out, as in a database file
}

const ctxStep = 10_000 // keys between two looks at ctx

// Write writes an etcd 3.7 snapshot of Kubernetes-like keys to path. The same
// options make the same keys and values.
func Write(ctx context.Context, path string, o Options) (err error) {
	if o.Keys < 1 || o.ValueBytes < 0 {
		return fmt.Errorf("write %s: %d keys of %d bytes: at least one key is needed", path, o.Keys, o.ValueBytes)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(path))
		}
	}()
	cfg := backend.DefaultBackendConfig(zap.NewNop())
	cfg.Path, cfg.UnsafeNoFsync = path, true
	be := backend.New(cfg)
	prepare(be)
	err = fill(ctx, be, o)
	if err := errors.Join(err, be.Close()); err != nil || o.NoTrailer {
		return err
	}
	return addTrailer(path)
}

// prepare makes the buckets that a server would have made.
func prepare(be backend.Backend) {
	schema.CreateMetaBucket(be.BatchTx())
	tx := be.BatchTx()
	tx.LockOutsideApply()
	defer tx.Unlock()
	for _, bucket := range []backend.Bucket{
		schema.Members, schema.MembersRemoved, schema.Cluster, schema.Alarm,
		schema.Auth, schema.AuthRoles, schema.AuthUsers,
	} {
		tx.UnsafeCreateBucket(bucket)
	}
	schema.UnsafeSetStorageVersion(tx, semver.New("3.7.0"))
}

func fill(ctx context.Context, be backend.Backend, o Options) error {
	store := mvcc.New(zap.NewNop(), be, &lease.FakeLessor{}, mvcc.StoreConfig{})
	random := rand.NewChaCha8([32]byte{byte(o.Seed), byte(o.Seed >> 8), byte(o.Seed >> 16), byte(o.Seed >> 24)})
	value := make([]byte, o.ValueBytes)
	for range o.Rewrites + 1 {
		for i := range o.Keys {
			if i%ctxStep == 0 && ctx.Err() != nil {
				return errors.Join(context.Cause(ctx), store.Close())
			}
			_, _ = random.Read(value) // never fails
			key, head := object(i, o.SecretEvery)
			copy(value, head)
			store.Put([]byte(key), value, lease.NoLease)
		}
	}
	store.Commit()
	return store.Close()
}

// object returns the i-th key and how its value begins.
func object(i, secretEvery int) (key, head string) {
	const namespaces = 97
	if secretEvery > 0 && i%secretEvery == 0 {
		key = fmt.Sprintf("/registry/secrets/ns-%d/s-%d", i%namespaces, i)
		if i%(3*secretEvery) == 0 {
			return key, "k8s\x00\n\x0c\n\x02v1\x12\x06Secret\x12"
		}
		return key, "k8s:enc:aescbc:v1:key1:"
	}
	kinds := [...]string{"pods", "events", "configmaps", "leases", "replicasets", "deployments", "endpointslices"}
	return fmt.Sprintf("/registry/%s/ns-%d/o-%d", kinds[i%len(kinds)], i%namespaces, i), "k8s\x00\n\x0c\n\x02v1\x12\x03Pod\x12"
}

// addTrailer appends the SHA-256 that ends a snapshot.
func addTrailer(path string) (err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	_, err = f.Write(h.Sum(nil))
	return err
}
