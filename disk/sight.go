package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/etcdkit/etcdkit/internal/dirfd"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/mvccdb"
)

// ErrEtcdUnseen says that a running etcd cannot be ruled out, and that the
// measurement asked for has no form with reduced load.
var ErrEtcdUnseen = errors.New("a running etcd cannot be ruled out")

// sight is what could be seen of the etcds on a filesystem.
type sight struct {
	found  []Neighbour
	unseen int      // processes that could not be looked into
	blind  []string // what else could not be looked into, one sentence each
}

// lookAround looks for running etcds on the filesystem of a folder: in all
// processes, and at the lock of the database in the folder itself.
func lookAround(on Filesystem, at *dirfd.Dir, dir string) sight {
	s := lookAtProcesses(on)
	s.lookAtLock(at, dir)
	return s
}

// lookAtLock finds an etcd in another PID namespace, or of another user, by the
// lock that it holds on its database. Links are not followed.
func (s *sight) lookAtLock(at *dirfd.Dir, dir string) {
	names := databaseIn(dir)
	path := filepath.Join(dir, filepath.Join(names...))
	held, err := isLockHeld(at, names)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
	case err != nil:
		s.blind = append(s.blind, fmt.Sprintf("the lock of %s cannot be tried: %v", path, at.Named(err)))
	case held && !s.sees(dir):
		s.found = append(s.found, Neighbour{Data: path})
	}
}

// databaseIn returns the names that lead to the database below a data
// directory, or below one of its own folders.
func databaseIn(dir string) []string {
	switch filepath.Base(dir) {
	case "member":
		return []string{"snap", "db"}
	case "snap":
		return []string{"db"}
	}
	return []string{"member", "snap", "db"}
}

// sees reports whether a process was found that has data in dir open.
func (s *sight) sees(dir string) bool {
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		resolved = dir
	}
	for _, n := range s.found {
		if strings.HasPrefix(n.Data, resolved+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

// isLockHeld reports whether somebody holds the lock of a database alone, as a
// running etcd does.
func isLockHeld(at *dirfd.Dir, names []string) (_ bool, err error) {
	for _, name := range names[:len(names)-1] {
		next, err := at.OpenDir(name)
		if err != nil {
			return false, err
		}
		defer next.Close()
		at = next
	}
	file, err := at.OpenFile(names[len(names)-1], 0, 0)
	if err != nil {
		return false, err
	}
	defer file.Close()
	return mvccdb.IsHeldAlone(file)
}

// words returns what could not be seen, one sentence each.
func (s sight) words() []string {
	var all []string
	switch {
	case s.unseen == 1:
		all = append(all, "1 process could not be looked into")
	case s.unseen > 1:
		all = append(all, fmt.Sprintf("%d processes could not be looked into", s.unseen))
	}
	return append(all, s.blind...)
}

// reduceFor returns the options with reduced load where a running etcd cannot
// be ruled out; asked are the options before they were completed.
func (o Options) reduceFor(s sight, asked Options) (Options, error) {
	words := s.words()
	if len(words) == 0 || o.Gentle || o.Force {
		return o, nil
	}
	if o.Pattern != Fio || o.Jobs > 1 || o.Require.needBandwidth() {
		err := fmt.Errorf("%w: %s", ErrEtcdUnseen, strings.Join(words, "; "))
		return o, hint.With(err, "run it as root on the host, or with --force if no etcd uses this disk; reduced load (--gentle) is for pattern %s with one writer, and measures no bandwidth", Fio)
	}
	asked.Dir, asked.at, asked.Gentle = o.Dir, o.at, true
	return asked.complete()
}

// tellUnseen adds what could not be seen to the report.
func (r *Report) tellUnseen(s sight, opts Options) {
	r.Neighbours, r.UnseenProcesses = s.found, s.unseen
	words := strings.Join(s.words(), "; ")
	switch {
	case words == "":
	case opts.Gentle:
		r.addWarning("unseen", "a running etcd cannot be ruled out: %s; measured with reduced load, without bandwidth (as root on the host more can be seen; --force measures at full speed)", words)
	default:
		r.addWarning("unseen", "a running etcd cannot be ruled out: %s; --force measured at full speed", words)
	}
}
