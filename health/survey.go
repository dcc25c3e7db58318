package health

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Content is what the live keys of a cluster take.
type Content struct {
	Revision   int64       `json:"revision"`
	Keys       int64       `json:"keys"`
	LiveBytes  int64       `json:"liveBytes"`  // keys and values
	InUseBytes int64       `json:"inUseBytes"` // of the database, on the fullest member
	RestBytes  int64       `json:"restBytes"`  // in use but not live: history and overhead
	Prefixes   []PrefixUse `json:"prefixes"`   // the largest first
}

// PrefixUse is what the live keys under a prefix take.
type PrefixUse struct {
	Prefix string `json:"prefix"`
	Keys   int64  `json:"keys"`
	Bytes  int64  `json:"bytes"`
}

const (
	surveyPage     = 1 << 20 // aim of one page, in bytes
	surveyMaxKeys  = 10_000
	surveyPrefixes = 20 // shown, the rest is summed up
	prefixDepth    = 2  // segments: /registry/pods/
)

// Survey reads all live keys at one revision in pages that stay small, and
// sums them up by prefix.
func Survey(ctx context.Context, client Client) (Content, error) {
	uses := map[string]*PrefixUse{}
	var c Content
	next, limit := "\x00", int64(100)
	for {
		resp, err := surveyPageAt(ctx, client, next, limit, c.Revision)
		if err != nil {
			return c, fmt.Errorf("read live keys: %w", err)
		}
		c.Revision = cmp.Or(c.Revision, resp.Header.Revision)
		size := int64(0)
		for _, kv := range resp.Kvs {
			n := int64(len(kv.Key) + len(kv.Value))
			size += n
			prefix := prefixOf(kv.Key)
			use := uses[prefix]
			if use == nil {
				use = &PrefixUse{Prefix: prefix}
				uses[prefix] = use
			}
			use.Keys++
			use.Bytes += n
		}
		c.Keys += int64(len(resp.Kvs))
		c.LiveBytes += size
		if !resp.More || len(resp.Kvs) == 0 {
			break
		}
		next = string(resp.Kvs[len(resp.Kvs)-1].Key) + "\x00"
		limit = nextLimit(resp)
	}
	c.Prefixes = largest(uses)
	return c, nil
}

func surveyPageAt(ctx context.Context, client Client, from string, limit, revision int64) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, 6*defaultTimeout)
	defer cancel()
	opts := []clientv3.OpOption{clientv3.WithFromKey(), clientv3.WithLimit(limit)}
	if revision > 0 {
		// What was read at one revision by consensus is the same on every member.
		opts = append(opts, clientv3.WithRev(revision), clientv3.WithSerializable())
	}
	return client.Get(ctx, from, opts...)
}

// prefixOf is the key up to its second slash after the first character.
func prefixOf(key []byte) string {
	end := 0
	for range prefixDepth {
		i := bytes.IndexByte(key[min(end+1, len(key)):], '/')
		if i < 0 {
			break
		}
		end += 1 + i
	}
	if end == 0 {
		return "(no prefix)"
	}
	return string(key[:end+1])
}

func largest(uses map[string]*PrefixUse) []PrefixUse {
	out := make([]PrefixUse, 0, len(uses))
	for _, use := range uses {
		out = append(out, *use)
	}
	slices.SortFunc(out, func(a, b PrefixUse) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Prefix, b.Prefix))
	})
	if len(out) <= surveyPrefixes {
		return out
	}
	rest := PrefixUse{Prefix: "(others)"}
	for _, use := range out[surveyPrefixes:] {
		rest.Keys += use.Keys
		rest.Bytes += use.Bytes
	}
	return append(out[:surveyPrefixes:surveyPrefixes], rest)
}
