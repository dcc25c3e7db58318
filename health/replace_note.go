package health

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

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
	notes, err := r.notes(ctx, facts)
	if err != nil {
		return nil, err
	}
	var other *note
	for _, n := range notes {
		if n.about(r.opts.Old) {
			return &n, n.onlyOne(facts, r.opts.Old)
		}
		if sharesURL(n.PeerURLs, r.opts.PeerURLs) {
			other = &n
		}
	}
	if other != nil {
		return nil, hint.With(fmt.Errorf("%w: %s at %s is on its way in the place of %s (%s)", ErrRefused, other.Name, strings.Join(other.PeerURLs, ","), other.OldName, other.OldID),
			"%s", other.ways())
	}
	return nil, nil
}

// about reports whether the note is of the member that people call so.
func (n note) about(old string) bool {
	return n.Old == old || n.OldName == old || sameID(n.OldID, old)
}

// onlyOne refuses a name that another member has as well, beside the one that
// is being replaced and the new one.
func (n note) onlyOne(facts Facts, old string) error {
	if sameID(n.OldID, old) {
		return nil
	}
	var others []Member
	for _, m := range facts.Members {
		if m.Listed && means(m, old) && m.IDHex != n.OldID && !sharesURL(m.PeerURLs, n.PeerURLs) {
			others = append(others, m)
		}
	}
	if len(others) == 0 {
		return nil
	}
	return hint.With(fmt.Errorf("%w: %q fits %s, which is being replaced, and %s", ErrAmbiguous, old, n.OldID, ids(others)), "name the member by its id")
}

// ways are the two ends of a replacement that has begun.
func (n note) ways() string {
	return fmt.Sprintf("finish it: etcdkit member replace %s --name %s --peer-urls %s; or give it up: %s",
		n.OldID, n.Name, strings.Join(n.PeerURLs, ","), abortCommand(n.OldID))
}

func abortCommand(oldID string) string { return "etcdkit member replace --abort " + oldID }

func sameID(a, b string) bool {
	return strings.EqualFold(strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0"))
}

// sameURLs reports whether two lists name the same URLs.
func sameURLs(a, b []string) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(u string) bool { return !hasURL(b, u) })
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
