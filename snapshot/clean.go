package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/etcdkit/etcdkit/internal/store"
)

// Leftover is something that a run began and did not finish.
type Leftover struct {
	Key     string    `json:"key"`
	Upload  string    `json:"upload,omitempty"` // the upload's id, "" for an object
	Since   time.Time `json:"since"`
	Reason  string    `json:"reason"`
	Kept    bool      `json:"kept,omitempty"` // it is not sure that it is one
	Removed bool      `json:"removed"`
}

// CleanOptions says which leftovers to remove.
type CleanOptions struct {
	Runs       Runs
	StaleAfter time.Duration // 0 means DefaultStaleAfter
	Now        func() time.Time
	DryRun     bool
	Force      bool // delete by age though it is not sure what time it is
}

// Clean removes what runs left behind: unfinished uploads and data without a
// manifest, at once for a dead run of this machine, after StaleAfter for others.
// Nothing of a living run is touched, and nothing that this program did not
// write.
func Clean(ctx context.Context, repo store.Store, opts CleanOptions) ([]Leftover, error) {
	l, err := readListing(ctx, repo, "")
	if err != nil {
		return nil, fmt.Errorf("look for leftovers: %w", err)
	}
	found, _, err := l.clean(ctx, opts)
	return found, err
}

// clean is Clean, and reports whether a run was killed so lately that more of
// it may come to light.
func (l *listing) clean(ctx context.Context, opts CleanOptions) (found []Leftover, recent bool, err error) {
	if opts.StaleAfter <= 0 {
		opts.StaleAfter = DefaultStaleAfter
	}
	ended, living := opts.Runs.read(placeOf(l.repo))
	c := &cleaner{listing: l, opts: opts, ended: ended, living: living}
	defer func() {
		for _, d := range ended {
			if err != nil || opts.DryRun || c.unsure || opts.Now().Sub(d.began) < settled {
				d.run.abandon() // the next run looks again
				continue
			}
			d.run.end()
		}
	}()
	for _, d := range ended {
		recent = recent || opts.Now().Sub(d.began) < settled
	}
	if err := c.find(ctx); err != nil {
		return nil, recent, err
	}
	c.confirm(ctx)
	return c.found, recent, c.remove(ctx)
}

type cleaner struct {
	*listing
	opts   CleanOptions
	ended  map[string]*dead
	living map[string]bool
	found  []Leftover
	unsure bool // something was kept because nobody knows what it is

	clock *storageClock
}

// storageClock is the storage's time, and why nothing may be deleted by it.
type storageClock struct {
	now time.Time
	err error
}

// time asks the storage for its time, once.
func (c *cleaner) time(ctx context.Context) storageClock {
	if c.clock == nil {
		c.clock = &storageClock{}
		c.clock.now, c.clock.err = storageNow(ctx, c.repo, c.opts.Now(), c.opts.Force)
		if c.clock.err == nil && !c.opts.Force {
			c.clock.err = checkSilence(c.times(""), c.clock.now, shortestLeftover)
		}
	}
	return *c.clock
}

// find collects the leftovers.
func (c *cleaner) find(ctx context.Context) error {
	uploads, err := c.repo.Uploads(ctx, "")
	if err != nil {
		return fmt.Errorf("look for leftovers: %w", err)
	}
	for _, u := range uploads {
		if name, ok := parseKey(u.Key); ok {
			c.consider(ctx, name, Leftover{Key: u.Key, Upload: u.ID, Since: u.Started})
		}
	}
	whole := map[string]bool{}
	for _, m := range c.manifests {
		whole[m.cluster+"/"+m.base] = true
	}
	for key, o := range c.data {
		if name, _ := parseKey(key); !whole[name.cluster+"/"+name.base] {
			c.consider(ctx, name, Leftover{Key: key, Since: o.Modified})
		}
	}
	for base, keys := range c.records {
		for _, key := range keys {
			if name, _ := parseKey(key); !whole[name.cluster+"/"+base] {
				c.consider(ctx, name, Leftover{Key: key, Since: name.at})
			}
		}
	}
	for _, lone := range c.loneSignatures() {
		if name, ok := parseKey(lone.Key); ok {
			c.consider(ctx, name, Leftover{Key: lone.Key, Since: lone.Modified})
		}
	}
	slices.SortFunc(c.found, func(a, b Leftover) int { return strings.Compare(a.Key, b.Key) })
	return nil
}

// consider keeps a leftover if the rules allow to remove it.
func (c *cleaner) consider(ctx context.Context, name object, l Leftover) {
	switch d := c.ended[name.run]; {
	case c.living[name.run]:
		return
	case d != nil:
		l.Reason = "its run on this machine has ended"
	case c.deleting(l.Key):
		l.Reason = "its backup was being deleted by a run that has ended"
	default:
		clock := c.time(ctx)
		if clock.now.Sub(l.Since) <= c.opts.StaleAfter {
			return
		}
		l.Reason = fmt.Sprintf("unfinished since %s", l.Since.UTC().Format(time.RFC3339))
		if clock.err != nil {
			l.Kept, l.Reason = true, l.Reason+"; "+clock.err.Error()
		}
	}
	c.found = append(c.found, l)
}

func (c *cleaner) deleting(key string) bool {
	for _, d := range c.ended {
		if slices.Contains(d.file.Deleting, key) {
			return true
		}
	}
	return false
}

// loneSignatures returns the signatures of what the listing does not show.
func (c *cleaner) loneSignatures() (lone []store.Object) {
	for _, signatures := range c.signatures {
		for _, o := range signatures {
			if !c.keys[strings.TrimSuffix(o.Key, signatureSuffix)] {
				lone = append(lone, o)
			}
		}
	}
	return lone
}

// confirm asks for the manifest of everything that is about to be removed: with
// one it is no leftover, whatever the listing showed.
func (c *cleaner) confirm(ctx context.Context) {
	manifests := map[string]string{} // by the key of what belongs to it
	var ask []string
	young := false
	for _, l := range c.found {
		name, _ := parseKey(l.Key)
		manifest := name.cluster + "/" + name.base + manifestSuffix
		if name.kind == kindSignature {
			manifest = strings.TrimSuffix(l.Key, signatureSuffix)
		}
		if l.Upload != "" || l.Kept {
			continue
		}
		if !slices.Contains(ask, manifest) {
			ask = append(ask, manifest)
		}
		manifests[l.Key] = manifest
		young = young || c.opts.Now().Sub(l.Since).Abs() < settled
	}
	answers := confirmAbsent(ctx, c.repo, ask, young && !c.opts.DryRun)
	for i, l := range c.found {
		err, asked := answers[manifests[l.Key]]
		if !asked || err == nil || errors.Is(err, store.ErrNotExist) {
			continue
		}
		c.unsure = true
		c.found[i].Kept = true
		c.found[i].Reason = fmt.Sprintf("kept, for it may belong to a backup: %v", err)
	}
	c.found = slices.DeleteFunc(c.found, func(l Leftover) bool {
		err, asked := answers[manifests[l.Key]]
		return asked && err == nil
	})
}

func (c *cleaner) remove(ctx context.Context) error {
	if c.opts.DryRun {
		return nil
	}
	var errs []error
	for i, l := range c.found {
		if l.Kept {
			continue
		}
		err := error(nil)
		if l.Upload != "" {
			err = c.repo.Abort(ctx, store.Upload{Key: l.Key, ID: l.Upload})
		} else {
			err = c.repo.Delete(ctx, l.Key)
		}
		c.found[i].Removed = err == nil
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
