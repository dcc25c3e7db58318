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
	// maxLooks bounds the keys asked for in all: each level of a keyspace that is
	// not Kubernetes' may have very many prefixes. It is half a minute's work.
	maxLooks = 100_000
)

// Discover finds the prefixes under which Kubernetes keeps objects in a live
// cluster. It jumps from prefix to prefix and asks for one key of each, so that
// the size of the keyspace does not matter. What it sees goes to a Finder, which
// judges by the same rules as in a database file. A keyspace without Kubernetes
// gives no prefix and no error.
func Discover(ctx context.Context, kv Getter) ([]string, error) {
	d := discovery{kv: kv, checked: make(map[string]bool)}
	// Nearly every cluster has its objects where the API server puts them
	// unless told otherwise.
	for _, usual := range UsualPrefixes() {
		if err := d.check(ctx, usual); err != nil {
			return nil, err
		}
	}
	// Who may read only Kubernetes' keys is refused the rest; what was found
	// counts all the same.
	err := d.descend(ctx, "", 0)
	found := d.finder.Prefixes()
	if err != nil && (len(found) == 0 || !errors.Is(err, rpctypes.ErrPermissionDenied)) {
		return nil, err
	}
	return found, nil
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
	kv      Getter
	finder  Finder
	checked map[string]bool
	looks   int // keys asked for below a prefix
}

func (d *discovery) found(dir string) bool { return slices.Contains(d.finder.Prefixes(), dir) }

// check shows the finder objects below prefix that every cluster has.
func (d *discovery) check(ctx context.Context, prefix string) error {
	if d.checked[prefix] {
		return nil
	}
	d.checked[prefix] = true
	kinds, _ := Telltales(prefix)
	for _, kind := range kinds {
		if err := d.show(ctx, prefix+"/"+kind+"/"); err != nil {
			return err
		}
		if d.found(prefix) {
			return nil
		}
	}
	return nil
}

// show shows the finder the first key below dir, which ends with a slash.
func (d *discovery) show(ctx context.Context, dir string) error {
	resp, err := d.kv.Get(ctx, dir, clientv3.WithPrefix(), clientv3.WithLimit(1))
	if err != nil {
		return fmt.Errorf("look for Kubernetes' keys: %w", err)
	}
	for _, kv := range resp.Kvs {
		d.finder.Add(kv.Key, kv.Value)
	}
	return nil
}

// descend looks at each first part of the keys below dir. A control plane may
// lie below another one's prefix, so it does not stop where it has found one.
func (d *discovery) descend(ctx context.Context, dir string, depth int) error {
	if depth > maxParts {
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
		key := resp.Kvs[0].Key
		part, deeper := firstPart(key[len(dir)+1:])
		below := dir + "/" + part
		from = below + "\x00"
		if !deeper {
			continue
		}
		if err := d.look(ctx, dir, below, key, depth); err != nil {
			return err
		}
		from = below + "0" // the first key that does not begin with below + "/"
	}
}

// look looks at what is in below, a directory of dir of which key is the first one.
func (d *discovery) look(ctx context.Context, dir, below string, key []byte, depth int) error {
	known, fits := objectBelow(key[len(dir)+1:])
	if known {
		if err := d.check(ctx, dir); err != nil {
			return err
		}
		if err := d.show(ctx, below+"/"); err != nil {
			return err
		}
	}
	if fits && d.found(dir) {
		return nil // objects of the control plane at dir
	}
	return d.descend(ctx, below, depth+1)
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
