package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/etcdkit/etcdkit/internal/dirfd"
	"github.com/etcdkit/etcdkit/internal/scratch"
	"github.com/etcdkit/etcdkit/internal/store"
)

// DefaultStaleAfter is how old leftovers of runs that this machine does not
// know must be before they are removed.
const DefaultStaleAfter = 24 * time.Hour

const (
	runSuffix = ".run"
	// settled is when a store has finished what the last request of a killed run
	// began: until then more of that run may come to light.
	settled = time.Hour
	// maxRunFile bounds a run's file: some 100,000 keys that a prune deletes.
	maxRunFile = 32 << 20
)

// Runs is the folder in which every run that changes a repository leaves a
// locked file, so that a later one can tell what a killed run left behind from
// what a living one is about to finish. The zero value keeps no files.
type Runs struct{ Dir string }

// runFile is what a run's file says.
type runFile struct {
	Repository string   `json:"repository"`
	Deleting   []string `json:"deleting,omitempty"` // data objects whose manifests go first
}

// run is a run under way.
type run struct {
	id   string
	lock *scratch.Lock
	dir  *dirfd.Dir // of its file
}

// start registers a run. It fails where the folder cannot be written; the run
// can go on without.
func (r Runs) start(id string, content runFile) (*run, error) {
	if r.Dir == "" {
		return &run{id: id}, nil
	}
	err := os.MkdirAll(r.Dir, 0o700)
	if err != nil {
		return &run{id: id}, fmt.Errorf("register run: %w", err)
	}
	text, err := json.Marshal(content)
	if err != nil {
		return &run{id: id}, fmt.Errorf("register run: %w", err)
	}
	dir, err := dirfd.Open(r.Dir)
	if err != nil {
		return &run{id: id}, fmt.Errorf("register run: %w", err)
	}
	lock, err := scratch.Create(dir, id+runSuffix, append(text, '\n'))
	if err != nil {
		return &run{id: id}, errors.Join(fmt.Errorf("register run: %w", err), dir.Close())
	}
	return &run{id: id, lock: lock, dir: dir}, nil
}

// end removes the run's file: it has left nothing behind.
func (r *run) end() {
	if r.lock != nil {
		_ = r.lock.Remove()
		r.release()
	}
}

// abandon leaves the run's file behind, unlocked: a later run looks whether
// there is something to remove.
func (r *run) abandon() {
	if r.lock != nil {
		_ = r.lock.Close()
		r.release()
	}
}

func (r *run) release() {
	_ = r.dir.Close()
	r.lock, r.dir = nil, nil
}

// dead is a run of this machine that ended without cleaning up. Its file is
// locked by whoever looks at it.
type dead struct {
	run   *run
	file  runFile
	bad   bool // its file says nothing
	began time.Time
}

// placeOf names a repository in a run's file: a folder in the same way from
// everywhere.
func placeOf(repo store.Store) string {
	if folder, ok := repo.(*store.Folder); ok {
		return absolute(folder.URL()) + "/"
	}
	return repo.URL()
}

// read returns the runs of this machine at a repository: those that are dead,
// locked by the caller now, and the ids of those that live. A file that is not
// certainly the caller's own counts as that of a living run: nothing is removed
// on the word of somebody else.
func (r Runs) read(repository string) (ended map[string]*dead, living map[string]bool) {
	ended, living = map[string]*dead{}, map[string]bool{}
	if r.Dir == "" {
		return ended, living
	}
	dir, err := dirfd.Open(r.Dir)
	if err != nil {
		return ended, living
	}
	defer dir.Close()
	scratch.SweepNew(dir)
	names, _ := dir.Names()
	for _, name := range names {
		id, ok := strings.CutSuffix(name, runSuffix)
		if !ok || id == "" || strings.HasPrefix(name, ".") {
			continue
		}
		d, err := openDead(dir, id)
		switch {
		case errors.Is(err, scratch.ErrLocked), err != nil && !errors.Is(err, fs.ErrNotExist):
			living[id] = true
		case err != nil:
		case d.bad && time.Since(d.began) > settled:
			d.run.end() // killed before it had begun anything
		case d.bad, d.file.Repository != repository:
			d.run.abandon() // another repository's, cleaned there
		default:
			ended[id] = d
		}
	}
	return ended, living
}

// openDead locks and reads the file of a run that is dead.
func openDead(dir *dirfd.Dir, id string) (*dead, error) {
	lock, err := scratch.Open(dir, id+runSuffix)
	if err != nil {
		return nil, err
	}
	d := &dead{run: &run{id: id, lock: lock}}
	if d.run.dir, err = dir.Dup(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if info, err := lock.Stat(); err == nil {
		d.began = info.ModTime()
	}
	d.bad = json.NewDecoder(io.LimitReader(lock, maxRunFile)).Decode(&d.file) != nil
	return d, nil
}

// Leftover is something that a run began and did not finish.
type Leftover struct {
	Key     string    `json:"key"`
	Upload  string    `json:"upload,omitempty"` // the upload's id, "" for an object
	Since   time.Time `json:"since"`
	Reason  string    `json:"reason"`
	Removed bool      `json:"removed"`
}

// CleanOptions says which leftovers to remove.
type CleanOptions struct {
	Runs       Runs
	StaleAfter time.Duration // 0 means DefaultStaleAfter
	Now        func() time.Time
	DryRun     bool
}

// Clean removes what runs left behind: unfinished uploads and data without a
// manifest, at once for a dead run of this machine, after StaleAfter for others.
// Nothing of a living run is touched, and nothing that this program did not
// write.
func Clean(ctx context.Context, repo store.Store, opts CleanOptions) ([]Leftover, error) {
	found, _, err := clean(ctx, repo, opts)
	return found, err
}

// clean is Clean, and reports whether a run was killed so lately that more of
// it may come to light.
func clean(ctx context.Context, repo store.Store, opts CleanOptions) (found []Leftover, recent bool, err error) {
	if opts.StaleAfter <= 0 {
		opts.StaleAfter = DefaultStaleAfter
	}
	ended, living := opts.Runs.read(placeOf(repo))
	c := &cleaner{repo: repo, opts: opts, ended: ended, living: living}
	defer func() {
		for _, d := range ended {
			if err != nil || opts.DryRun || opts.Now().Sub(d.began) < settled {
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
	return c.found, recent, c.remove(ctx)
}

type cleaner struct {
	repo   store.Store
	opts   CleanOptions
	ended  map[string]*dead
	living map[string]bool
	found  []Leftover
}

// find collects the leftovers.
func (c *cleaner) find(ctx context.Context) error {
	uploads, err := c.repo.Uploads(ctx, "")
	if err != nil {
		return fmt.Errorf("look for leftovers: %w", err)
	}
	for _, u := range uploads {
		if name, ok := parseKey(u.Key); ok {
			c.consider(name, Leftover{Key: u.Key, Upload: u.ID, Since: u.Started})
		}
	}
	l, err := readListing(ctx, c.repo, "")
	if err != nil {
		return fmt.Errorf("look for leftovers: %w", err)
	}
	whole := map[string]bool{}
	for _, m := range l.manifests {
		whole[m.cluster+"/"+m.base] = true
	}
	for key, o := range l.data {
		if name, _ := parseKey(key); !whole[name.cluster+"/"+name.base] {
			c.consider(name, Leftover{Key: key, Since: o.Modified})
		}
	}
	for base, keys := range l.records {
		for _, key := range keys {
			if name, _ := parseKey(key); !whole[name.cluster+"/"+base] {
				c.consider(name, Leftover{Key: key, Since: name.at})
			}
		}
	}
	slices.SortFunc(c.found, func(a, b Leftover) int { return strings.Compare(a.Key, b.Key) })
	return nil
}

// consider keeps a leftover if the rules allow to remove it.
func (c *cleaner) consider(name object, l Leftover) {
	age := c.opts.Now().Sub(l.Since)
	switch d := c.ended[name.run]; {
	case c.living[name.run]:
		return
	case d != nil:
		l.Reason = "its run on this machine has ended"
	case c.deleting(l.Key):
		l.Reason = "its backup was being deleted by a run that has ended"
	case age > c.opts.StaleAfter:
		l.Reason = fmt.Sprintf("unfinished since %s", l.Since.UTC().Format(time.RFC3339))
	default:
		return
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

func (c *cleaner) remove(ctx context.Context) error {
	if c.opts.DryRun {
		return nil
	}
	var errs []error
	for i, l := range c.found {
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
