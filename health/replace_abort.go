package health

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/hint"
)

const actionForget = "forget"

// AbortOptions says which replacement is given up.
type AbortOptions struct {
	Old    string // the member that was to be replaced: its id, or name
	DryRun bool
}

// AbortReplace gives up a replacement that has begun: it removes the new member
// while that is a learner, and the note. What cannot be undone is that the old
// member was removed; the outcome says so.
func AbortReplace(ctx context.Context, tools Tools, endpoints []string, opts AbortOptions) (*Outcome, error) {
	r := &replacement{run: newRun(tools, endpoints, DefragOptions{}), opts: ReplaceOptions{Old: opts.Old}}
	err := r.abort(ctx, opts)
	if r.lock != nil {
		err = errors.Join(err, r.lock.Release(ctx))
	}
	return r.out, err
}

func (r *replacement) abort(ctx context.Context, opts AbortOptions) error {
	facts, err := r.look(ctx)
	if err != nil {
		return err
	}
	if err := voterWithQuorum(facts); err != nil {
		return err
	}
	notes, err := r.notes(ctx, facts)
	if err != nil {
		return err
	}
	if r.note, err = onlyNote(notes, opts.Old); err != nil {
		return err
	}
	r.noted, r.opts.PeerURLs, r.opts.Name = true, r.note.PeerURLs, r.note.Name
	r.place(facts)
	r.out.Plan = r.undoing()
	if r.tools.Planned != nil {
		r.tools.Planned(r.out.Plan)
	}
	if opts.DryRun {
		return nil
	}
	if err := r.takeLock(ctx, facts); err != nil {
		return err
	}
	for _, a := range r.out.Plan {
		if err := r.mayGoOn(ctx); err != nil {
			return err
		}
		if err := r.undo(ctx, facts, a); err != nil {
			return err
		}
	}
	return nil
}

// undoing is what giving up takes.
func (r *replacement) undoing() []Action {
	plan := []Action{}
	left := "the old member " + r.note.OldID + " stays"
	if r.old == nil {
		left = "the old member " + r.note.OldID + " was removed before, which cannot be undone: etcdkit member add puts another in its place"
	}
	switch {
	case r.new != nil && r.new.Learner:
		plan = append(plan, Action{Action: actionRemove, Member: r.new.Label(), MemberIDHex: r.new.IDHex, Detail: "a learner, so quorum stays as it is"})
	case r.new != nil:
		left += "; the new member " + r.new.Named() + " has a vote already and stays"
	}
	return append(plan, Action{Action: actionForget, Detail: "the replacement of " + r.note.OldID + " by " + r.note.Name + " at " + strings.Join(r.note.PeerURLs, ",") + "; " + left})
}

func (r *replacement) undo(ctx context.Context, facts Facts, a Action) error {
	return r.do(a.Action, a.Member, func() (string, error) {
		if a.Action == actionForget {
			return replacePrefix + r.note.OldID, r.forget(ctx, facts)
		}
		err := r.change(ctx, facts, func(ctx context.Context, client Operator) error {
			_, err := client.MemberRemove(ctx, r.new.ID)
			if is(err, rpctypes.ErrMemberNotFound) {
				return nil
			}
			return err
		})
		return "the learner has left", err
	})
}

// notes are those of all replacements that have begun.
func (r *replacement) notes(ctx context.Context, facts Facts) ([]note, error) {
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
	out := make([]note, len(resp.Kvs))
	for i, kv := range resp.Kvs {
		if err := json.Unmarshal(kv.Value, &out[i]); err != nil {
			return nil, fmt.Errorf("read %s: %w", kv.Key, err)
		}
	}
	return out, nil
}

// onlyNote returns the one note of the member that people call so.
func onlyNote(notes []note, old string) (note, error) {
	var found []note
	var known []string
	for _, n := range notes {
		known = append(known, strings.TrimSpace(n.OldID+" "+n.OldName)+" by "+n.Name)
		if sameID(n.OldID, old) {
			return n, nil
		}
		if n.about(old) {
			found = append(found, n)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return note{}, hint.With(fmt.Errorf("%w: %q fits several replacements: %s", ErrAmbiguous, old, strings.Join(known, "; ")), "name the old member by its id")
	case len(notes) == 0:
		return note{}, fmt.Errorf("%w %q is being replaced: no replacement has begun", ErrNoMember, old)
	}
	return note{}, fmt.Errorf("%w %q is being replaced; begun: %s", ErrNoMember, old, strings.Join(known, "; "))
}
