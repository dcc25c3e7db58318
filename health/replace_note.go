package health

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/hint"
)

// replacePrefix holds a note of each replacement that has begun: between
// its two halves the old member is gone and the new one is not there yet.
const replacePrefix = "etcdkit/replace/"

// note is what is written down of a replacement.
type note struct {
	Old      string   `json:"old"` // as it was asked for
	OldID    string   `json:"oldID"`
	OldName  string   `json:"oldName"`
	Name     string   `json:"name"`
	PeerURLs []string `json:"peerURLs"`
}

// begun returns the note about the old member, if there is one. A new member
// that is on its way in the place of another one is refused.
func (r *replacement) begun(ctx context.Context, facts Facts) (*note, error) {
	client, err := r.anyOf(ctx, facts)
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	resp, err := client.Get(ctx, replacePrefix, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("look for a replacement that has begun: %w", err)
	}
	var other *note
	for _, kv := range resp.Kvs {
		var n note
		if err := json.Unmarshal(kv.Value, &n); err != nil {
			return nil, fmt.Errorf("read %s: %w", kv.Key, err)
		}
		if n.Old == r.opts.Old || n.OldName == r.opts.Old || sameID(n.OldID, r.opts.Old) {
			return &n, nil
		}
		if sharesURL(n.PeerURLs, r.opts.PeerURLs) {
			other = &n
		}
	}
	if other != nil {
		return nil, hint.With(fmt.Errorf("%w: %s at %s is on its way in the place of %s", ErrRefused, other.Name, strings.Join(other.PeerURLs, ","), other.OldName),
			"finish that first: etcdkit member replace %s --name %s --peer-urls %s; if it was given up: etcdkit del %s", other.OldID, other.Name, strings.Join(other.PeerURLs, ","), replacePrefix+other.OldID)
	}
	return nil, nil
}

func sameID(a, b string) bool {
	return strings.EqualFold(strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0"))
}

// write notes the replacement down, unless the quota is used up. With CORRUPT
// armed it goes on without, for a replacement is what ends that.
func (r *replacement) write(ctx context.Context, facts Facts) error {
	text, err := json.Marshal(r.note)
	if err != nil {
		return fmt.Errorf("note the replacement: %w", err)
	}
	return r.change(ctx, facts, func(ctx context.Context, client Operator) error {
		_, err := client.Put(ctx, replacePrefix+r.note.OldID, string(text))
		if is(err, rpctypes.ErrNoSpace) {
			return hint.With(err, "recover the cluster first: \"etcdkit alarm recover\"")
		}
		if is(err, rpctypes.ErrCorrupt) {
			return nil
		}
		r.noted = err == nil
		return err
	})
}

func (r *replacement) forget(ctx context.Context, facts Facts) error {
	if !r.noted {
		return nil
	}
	return r.change(ctx, facts, func(ctx context.Context, client Operator) error {
		_, err := client.Delete(ctx, replacePrefix+r.note.OldID)
		return err
	})
}
