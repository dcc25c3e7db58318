package ctl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/kube"
	"github.com/etcdkit/etcdkit/internal/output"
)

// guard asks before the operations, when one of them writes to or deletes the
// whole keyspace or objects of Kubernetes. It is for the native dialect. Where
// standard input may have described them nobody is asked: whoever pipes data in
// is not there to answer.
func (t *tree) guard(ctx context.Context, client *clientv3.Client, stdinIsData bool, ops ...clientv3.Op) error {
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
		prefix, err := kubePrefixAbove(ctx, client, t.Global.Found.KeyPrefixes, op.KeyBytes())
		if prefix == "" || err != nil {
			return "", unlessDenied(err)
		}
		return fmt.Sprintf("write %q among the objects of Kubernetes under %s?", op.KeyBytes(), prefix), nil
	case !op.IsDelete():
		return "", nil
	}
	return deletes(ctx, client, t.Global.Found.KeyPrefixes, op)
}

// deletes says in words what is dangerous about a deletion, or nothing. known
// are prefixes that need not be looked for.
func deletes(ctx context.Context, client *clientv3.Client, known []string, op clientv3.Op) (string, error) {
	what := "the whole keyspace"
	if !wholeKeyspace(op) {
		var err error
		if what, err = kubeWords(kubePrefixIn(ctx, client, known, op.KeyBytes(), op.RangeBytes())); err != nil {
			return "", err
		}
	}
	count, cluster, err := countKeys(ctx, client, op)
	if err != nil {
		return "", err
	}
	if whole, err := everything(ctx, client, op, count); err != nil {
		return "", err
	} else if whole {
		what = "the whole keyspace"
	}
	switch {
	case what == "":
		return "", nil
	case count < 0:
		return fmt.Sprintf("delete keys that may not be counted: %s?", what), nil
	}
	return fmt.Sprintf("delete %d keys of cluster %s: %s?", count, output.ID(cluster), what), nil
}

// kubeWords says what kubePrefixIn found. What may not be read may be anything.
func kubeWords(prefix string, err error) (string, error) {
	switch {
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		return "what may be objects of Kubernetes, for this user may not look", nil
	case err != nil || prefix == "":
		return "", err
	}
	return "objects of Kubernetes under " + prefix, nil
}

func unlessDenied(err error) error {
	if errors.Is(err, rpctypes.ErrPermissionDenied) {
		return nil
	}
	return err
}

// countKeys counts what op is about. The count is negative where the user may
// delete and not read.
func countKeys(ctx context.Context, client *clientv3.Client, op clientv3.Op) (count int64, cluster uint64, err error) {
	opts := []clientv3.OpOption{clientv3.WithCountOnly()}
	if len(op.RangeBytes()) > 0 {
		opts = append(opts, clientv3.WithRange(string(op.RangeBytes())))
	}
	resp, err := client.Get(ctx, string(op.KeyBytes()), opts...)
	switch {
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		return -1, 0, nil
	case err != nil:
		return 0, 0, fmt.Errorf("count the keys to delete: %w", err)
	}
	return resp.Count, resp.Header.ClusterId, nil
}

// everything reports whether a range holds all the keys that there are, of
// which it has count. Whoever may not count all may not delete all.
func everything(ctx context.Context, client *clientv3.Client, op clientv3.Op, count int64) (bool, error) {
	if wholeKeyspace(op) || len(op.RangeBytes()) == 0 || count <= 0 {
		return wholeKeyspace(op), nil
	}
	resp, err := client.Get(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithCountOnly())
	if err != nil {
		return false, unlessDenied(err)
	}
	return resp.Count == count, nil
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
// if any: a known one, or one that looks like it.
func kubePrefixAbove(ctx context.Context, client *clientv3.Client, known []string, key []byte) (string, error) {
	for _, prefix := range known {
		if bytes.HasPrefix(key, []byte(prefix+"/")) {
			return prefix, nil
		}
	}
	var denied error
	for _, dir := range ancestors(string(key)) {
		is, err := isKubePrefix(ctx, client, dir)
		switch {
		case is:
			return dir, nil
		case unlessDenied(err) != nil:
			return "", err
		case err != nil:
			denied = err // a directory further in may be readable
		}
	}
	return "", denied
}

func isKubePrefix(ctx context.Context, client *clientv3.Client, dir string) (bool, error) {
	var gets []clientv3.Op
	kinds, enough := kube.Telltales(dir)
	for _, resource := range kinds {
		gets = append(gets, clientv3.OpGet(dir+"/"+resource+"/", clientv3.WithPrefix(), clientv3.WithLimit(1), clientv3.WithKeysOnly()))
	}
	resp, err := client.Txn(ctx).Then(gets...).Commit()
	if err != nil {
		return false, fmt.Errorf("look for objects of Kubernetes under %s: %w", dir, err)
	}
	found := 0
	for _, r := range resp.Responses {
		found += len(r.GetResponseRange().GetKvs())
	}
	return found >= enough, nil
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
func kubePrefixIn(ctx context.Context, client *clientv3.Client, known []string, from, end []byte) (string, error) {
	if prefix, err := kubePrefixAbove(ctx, client, known, from); prefix != "" || err != nil || len(end) == 0 {
		return prefix, err
	}
	if i := slices.IndexFunc(known, func(prefix string) bool { return overlaps(from, end, prefix) }); i >= 0 {
		return known[i], nil
	}
	for _, usual := range kube.UsualPrefixes() {
		if !overlaps(from, end, usual) {
			continue
		}
		if is, err := isKubePrefix(ctx, client, usual); is || err != nil {
			return usual, err
		}
	}
	var finder kube.Finder
	looked := map[string]bool{}
	next := from
	for range maxProbes {
		resp, err := client.Get(ctx, string(next), clientv3.WithRange(string(end)), clientv3.WithLimit(1))
		if err != nil {
			return "", fmt.Errorf("look for objects of Kubernetes: %w", err)
		}
		if len(resp.Kvs) == 0 {
			break
		}
		kv := resp.Kvs[0]
		finder.Add(kv.Key, kv.Value)
		// The value of this one key may be no evidence. Where names look like
		// Kubernetes', a question too many is better than a deletion too many.
		for _, dir := range aboveTelltales(string(kv.Key)) {
			if looked[dir] {
				continue
			}
			looked[dir] = true
			if is, err := isKubePrefix(ctx, client, dir); is || err != nil {
				return dir, err
			}
		}
		next = beyond(string(kv.Key))
		if !bytes.Equal(end, []byte{0}) && bytes.Compare(next, end) >= 0 {
			break
		}
	}
	return strings.Join(finder.Prefixes(), ", "), nil
}

// aboveTelltales returns the directories of key that have one named like a kind
// of Kubernetes' objects in them.
func aboveTelltales(key string) []string {
	var dirs []string
	for _, dir := range ancestors(key) {
		kinds, _ := kube.Telltales(dir)
		part, _, below := strings.Cut(strings.TrimPrefix(key, dir+"/"), "/")
		if below && slices.Contains(kinds, part) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
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
