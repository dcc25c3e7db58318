package ctl

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/kube"
	"github.com/etcdkit/etcdkit/internal/output"
)

// guard asks before the operations, when one of them writes to or deletes the
// whole keyspace or objects of Kubernetes. It is for the native dialect.
func (t *tree) guard(ctx context.Context, client *clientv3.Client, ops ...clientv3.Op) error {
	return t.guardFrom(ctx, client, false, ops...)
}

// guardFrom is guard for requests that standard input may have described: then
// nobody is asked, since whoever pipes data in is not there to answer.
func (t *tree) guardFrom(ctx context.Context, client *clientv3.Client, stdinIsData bool, ops ...clientv3.Op) error {
	if t.Global.Yes {
		return nil
	}
	for _, op := range ops {
		touch, err := t.touches(ctx, client, op)
		if err != nil {
			return err
		}
		if touch == "" {
			continue
		}
		if stdinIsData {
			return cli.Guard(hint.With(fmt.Errorf("not done without a confirmation: %s", touch), "--yes confirms it"))
		}
		if err := t.Confirm(touch); err != nil {
			return hint.With(err, "--yes confirms it; \"etcdkit snapshot save FILE\" first makes it possible to go back")
		}
	}
	return nil
}

// touches says in words what is dangerous about op, or nothing.
func (t *tree) touches(ctx context.Context, client *clientv3.Client, op clientv3.Op) (string, error) {
	ctx, cancel := t.Timeout(ctx)
	defer cancel()
	switch {
	case op.IsPut():
		prefix := kubePrefixAbove(ctx, client, op.KeyBytes())
		if prefix == "" {
			return "", nil
		}
		return fmt.Sprintf("write %q among the objects of Kubernetes under %s?", op.KeyBytes(), prefix), nil
	case !op.IsDelete():
		return "", nil
	}
	what := ""
	if wholeKeyspace(op) {
		what = "the whole keyspace"
	} else if prefix := kubePrefixIn(ctx, client, op.KeyBytes(), op.RangeBytes()); prefix != "" {
		what = "objects of Kubernetes under " + prefix
	}
	if what == "" {
		return "", nil
	}
	opts := []clientv3.OpOption{clientv3.WithCountOnly()}
	if len(op.RangeBytes()) > 0 {
		opts = append(opts, clientv3.WithRange(string(op.RangeBytes())))
	}
	resp, err := client.Get(ctx, string(op.KeyBytes()), opts...)
	if err != nil {
		return "", fmt.Errorf("count the keys to delete: %w", err)
	}
	return fmt.Sprintf("delete %d keys of cluster %s: %s?", resp.Count, output.ID(resp.Header.ClusterId), what), nil
}

// wholeKeyspace reports whether nothing lies outside of op's range.
func wholeKeyspace(op clientv3.Op) bool {
	return bytes.Equal(op.RangeBytes(), []byte{0}) && bytes.Compare(op.KeyBytes(), []byte{0}) <= 0
}

const (
	maxAncestors = 4  // parts of a Kubernetes prefix that is looked for
	maxProbes    = 64 // keys looked at in a range
)

// kubePrefixAbove returns the prefix of Kubernetes' objects that key is under,
// if any. Every cluster has at least two of the resources asked for. What may
// not be read cannot be told, and counts as none.
func kubePrefixAbove(ctx context.Context, client *clientv3.Client, key []byte) string {
	for _, dir := range ancestors(string(key)) {
		if isKubePrefix(ctx, client, dir) {
			return dir
		}
	}
	return ""
}

func isKubePrefix(ctx context.Context, client *clientv3.Client, dir string) bool {
	var gets []clientv3.Op
	for _, resource := range []string{"namespaces", "serviceaccounts", "configmaps", "secrets", "pods", "ranges"} {
		gets = append(gets, clientv3.OpGet(dir+"/"+resource+"/", clientv3.WithPrefix(), clientv3.WithLimit(1), clientv3.WithKeysOnly()))
	}
	resp, err := client.Txn(ctx).Then(gets...).Commit()
	if err != nil {
		return false
	}
	found := 0
	for _, r := range resp.Responses {
		found += len(r.GetResponseRange().GetKvs())
	}
	return found >= 2
}

// ancestors are the directories that key is in, the outermost first.
func ancestors(key string) []string {
	var dirs []string
	for i := 1; i < len(key) && len(dirs) < maxAncestors; i++ {
		if key[i] == '/' {
			dirs = append(dirs, key[:i])
		}
	}
	return dirs
}

// kubePrefixIn returns a prefix of Kubernetes' objects that overlaps the range,
// if any. It looks at single keys and jumps over what is alike.
func kubePrefixIn(ctx context.Context, client *clientv3.Client, from, end []byte) string {
	if prefix := kubePrefixAbove(ctx, client, from); prefix != "" || len(end) == 0 {
		return prefix
	}
	for _, usual := range []string{"/registry", "/kubernetes.io"} {
		if overlaps(from, end, usual) && isKubePrefix(ctx, client, usual) {
			return usual
		}
	}
	var finder kube.Finder
	next := from
	for range maxProbes {
		resp, err := client.Get(ctx, string(next), clientv3.WithRange(string(end)), clientv3.WithLimit(1))
		if err != nil || len(resp.Kvs) == 0 {
			break
		}
		kv := resp.Kvs[0]
		finder.Add(kv.Key, kv.Value)
		next = beyond(string(kv.Key))
		if !bytes.Equal(end, []byte{0}) && bytes.Compare(next, end) >= 0 {
			break
		}
	}
	return strings.Join(finder.Prefixes(), ", ")
}

// overlaps reports whether keys under dir may lie in the range.
func overlaps(from, end []byte, dir string) bool {
	toEnd := bytes.Equal(end, []byte{0})
	return bytes.Compare(from, []byte(dir+"0")) < 0 && (toEnd || bytes.Compare(end, []byte(dir+"/")) > 0)
}

// beyond returns the first key that is not in the same directory, of two parts
// at most, as key.
func beyond(key string) []byte {
	dirs := ancestors(key)
	if len(dirs) == 0 {
		return append([]byte(key), 0)
	}
	return []byte(dirs[min(len(dirs), 3)-1] + "0") // the byte after the slash
}
