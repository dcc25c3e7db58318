package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/hint"
)

// Getter is the part of *clientv3.Client that Discover uses.
type Getter interface {
	Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error)
}

const (
	maxDepth = 4 // parts of a prefix that is looked for
	// maxLooks bounds the keys asked for in all: each level of a keyspace that is
	// not Kubernetes' may have very many prefixes. It is half a minute's work.
	maxLooks = 100_000
)

// Discover finds the prefixes under which Kubernetes keeps objects in a live
// cluster. It asks for single keys, not values: a jump from prefix to prefix,
// so that the size of the keyspace does not matter. A keyspace without
// Kubernetes gives no prefix and no error.
func Discover(ctx context.Context, kv Getter) ([]string, error) {
	d := discovery{kv: kv}
	// Nearly every cluster has its objects where the API server puts them
	// unless told otherwise.
	for _, usual := range UsualPrefixes() {
		if err := d.check(ctx, usual); err != nil {
			return nil, err
		}
	}
	// Who may read only Kubernetes' keys is refused the rest; what was found
	// counts all the same.
	if err := d.descend(ctx, "", 0); err != nil && (len(d.found) == 0 || !errors.Is(err, rpctypes.ErrPermissionDenied)) {
		return nil, err
	}
	slices.Sort(d.found)
	return d.found, nil
}

// UsualPrefixes are where API servers keep their objects unless told
// otherwise: Kubernetes' own, and both of OpenShift's.
func UsualPrefixes() []string { return []string{"/registry", "/kubernetes.io", openshiftPrefix} }

const openshiftPrefix = "/openshift.io"

// Telltales are kinds of objects that tell that prefix is an API server's: it
// is when as many of them as enough are under it.
func Telltales(prefix string) (kinds []string, enough int) {
	if prefix == openshiftPrefix { // its name is evidence, too
		return []string{"routes", "oauth", "users", "imagestreams", "templates", "rangeallocations"}, 1
	}
	return []string{"namespaces", "secrets", "configmaps", "serviceaccounts", "pods", "ranges"}, 2
}

type discovery struct {
	kv    Getter
	found []string
	looks int // keys asked for below a prefix
}

// check adds prefix if objects stand below it that every cluster has.
func (d *discovery) check(ctx context.Context, prefix string) error {
	if slices.Contains(d.found, prefix) {
		return nil
	}
	found := 0
	kinds, enough := Telltales(prefix)
	for _, kind := range kinds {
		from := prefix + "/" + kind + "/"
		resp, err := d.kv.Get(ctx, from, clientv3.WithPrefix(), clientv3.WithLimit(1), clientv3.WithKeysOnly())
		if err != nil {
			return fmt.Errorf("look for Kubernetes' keys: %w", err)
		}
		if len(resp.Kvs) > 0 {
			found++
		}
		if found == enough {
			d.found = append(d.found, prefix)
			return nil
		}
	}
	return nil
}

// descend looks at each first part of the keys below dir.
func (d *discovery) descend(ctx context.Context, dir string, depth int) error {
	if slices.Contains(d.found, dir) || depth > maxDepth {
		return nil
	}
	from := dir + "/"
	end := clientv3.GetPrefixRangeEnd(from)
	for {
		if d.looks++; d.looks > maxLooks {
			// Whatever comes behind would silently count as not there.
			return hint.With(errors.New("look for Kubernetes' keys: the keyspace has too many prefixes"), "name Kubernetes' with --etcd-prefix")
		}
		resp, err := d.kv.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(1), clientv3.WithKeysOnly())
		if err != nil {
			return fmt.Errorf("look for Kubernetes' keys: %w", err)
		}
		if len(resp.Kvs) == 0 {
			return nil
		}
		part, deeper := firstPart(resp.Kvs[0].Key[len(dir)+1:])
		below := dir + "/" + part
		from = below + "\x00"
		switch {
		case !deeper:
			continue
		case wellKnown(part):
			if err := d.check(ctx, dir); err != nil || slices.Contains(d.found, dir) {
				return err
			}
		default:
			if err := d.descend(ctx, below, depth+1); err != nil {
				return err
			}
		}
		from = below + "0" // the first key that does not begin with below + "/"
	}
}

// firstPart cuts a key at its first slash; deeper is false where there is none.
func firstPart(key []byte) (part string, deeper bool) {
	for i, b := range key {
		if b == '/' {
			return string(key[:i]), true
		}
	}
	return string(key), false
}
