package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
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
	if folder, ok := folderOf(repo); ok {
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
