package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.uber.org/zap"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/wholefile"
)

// Names inside a target directory.
const (
	memberDir    = "member"
	asideInfix   = ".old-"
	stagePrefix  = ".etcdkit-restore-"
	stageLock    = "in-use"
	lostAndFound = "lost+found"
	// walRoom is what etcd preallocates for its log: the first segment, and
	// the next one as soon as it starts.
	walRoom = 2 * 64 << 20
	// logPlaced is logged after each move into place.
	logPlaced = "moved into place"
)

// stagedDir is a data directory in the making. Everything is built in a stage
// inside of it, because it may be a mount point, which no other directory can
// be renamed over.
type stagedDir struct {
	dir, wal  string
	stage     string
	walBelow  string // where the log is in the member directory, "" where it is not
	walBeside bool   // the log is in dir, beside the member directory
	walStage  string // for a log that is not in the member directory
	lock      *fileutil.LockedFile
	created   bool // dir is our own
	done      bool
	moved     []string
}

// openStagedDir checks the target and makes a stage in it.
func openStagedDir(opts RestoreOptions, size int64) (_ *stagedDir, err error) {
	t := &stagedDir{dir: opts.DataDir, wal: opts.WALDir}
	if t.wal == "" {
		t.wal = filepath.Join(t.dir, memberDir, "wal")
	}
	if err := t.placeWAL(); err != nil {
		return nil, err
	}
	if err := t.checkEmpty(opts.MoveAside); err != nil {
		return nil, err
	}
	if _, err := os.Stat(t.dir); errors.Is(err, fs.ErrNotExist) {
		t.created = true
	}
	if err := os.MkdirAll(t.dir, fileutil.PrivateDirMode); err != nil {
		return nil, fmt.Errorf("create the data directory: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	t.sweepStages()
	if err := t.checkRoom(size); err != nil {
		return nil, err
	}
	return t, t.makeStage()
}

// placeWAL finds out where the log is in the data directory, however the two
// are written.
func (t *stagedDir) placeWAL() error {
	dir, err := filepath.Abs(t.dir)
	if err != nil {
		return err
	}
	wal, err := filepath.Abs(t.wal)
	if err != nil {
		return err
	}
	member := filepath.Join(dir, memberDir)
	if wal == dir || wal == member || wal == filepath.Join(member, "snap") {
		return hint.With(fmt.Errorf("the WAL directory cannot be %s: other files of the member are there", t.wal), "choose one of its own")
	}
	if below, err := filepath.Rel(member, wal); err == nil && filepath.IsLocal(below) {
		t.walBelow = below
	}
	t.walBeside = filepath.Dir(wal) == dir
	return nil
}

// makeStage makes the directories that a member's files go to, and locks them
// as in use.
func (t *stagedDir) makeStage() error {
	name := stagePrefix + newRun()
	t.stage = filepath.Join(t.dir, name)
	switch {
	case t.walInside():
	case t.walBeside:
		t.walStage = filepath.Join(t.stage, "wal")
	default:
		t.walStage = filepath.Join(filepath.Dir(t.wal), name)
	}
	if err := os.MkdirAll(filepath.Join(t.stage, memberDir, "snap"), fileutil.PrivateDirMode); err != nil {
		return fmt.Errorf("create the data directory: %w", err)
	}
	lock, err := fileutil.TryLockFile(filepath.Join(t.stage, stageLock), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("lock %s: %w", t.stage, err)
	}
	t.lock = lock
	return nil
}

func (t *stagedDir) database() string { return filepath.Join(t.snapDir(), "db") }
func (t *stagedDir) snapDir() string  { return filepath.Join(t.stage, memberDir, "snap") }

// stagedWAL is where the log is built.
func (t *stagedDir) stagedWAL() string {
	if t.walStage != "" {
		return t.walStage
	}
	return filepath.Join(t.stage, memberDir, t.walBelow)
}

// walInside reports whether the log belongs into the member directory.
func (t *stagedDir) walInside() bool { return t.walBelow != "" }

// besideMember reports whether a name in the target is that of the log, which
// can be moved aside, or of one that was.
func (t *stagedDir) besideMember(name string, moveAside bool) bool {
	wal := filepath.Base(t.wal)
	return t.walBeside && (name == wal && moveAside || strings.HasPrefix(name, wal+asideInfix))
}

// checkEmpty refuses a target that holds something, but for what a mount point
// always has, what a killed restore left, and what earlier ones moved aside.
func (t *stagedDir) checkEmpty(moveAside bool) error {
	entries, err := os.ReadDir(t.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w or cannot be read: %w", ErrNotEmpty, err)
	}
	for _, e := range entries {
		name := e.Name()
		switch {
		case name == lostAndFound, strings.HasPrefix(name, stagePrefix), strings.HasPrefix(name, memberDir+asideInfix), t.besideMember(name, moveAside):
		case name == memberDir && moveAside:
			if err := refuseInUse(t.dir); err != nil {
				return err
			}
		case name == memberDir:
			return hint.With(fmt.Errorf("%w: %s holds a member", ErrNotEmpty, t.dir), "--move-aside keeps it as %s%s<time>", memberDir, asideInfix)
		default:
			return hint.With(fmt.Errorf("%w: %s holds %q", ErrNotEmpty, t.dir, name), "choose a directory that is empty or does not exist")
		}
	}
	if t.walInside() || moveAside {
		return nil
	}
	if _, err := os.Stat(t.wal); err == nil {
		return hint.With(fmt.Errorf("%w: the WAL directory %s exists", ErrNotEmpty, t.wal), "--move-aside keeps it under another name")
	}
	return nil
}

// refuseInUse refuses a data directory that a running etcd uses.
func refuseInUse(dir string) error {
	f, err := os.Open(filepath.Join(dir, memberDir, "snap", "db"))
	if err != nil {
		return nil // without a database nobody runs on it
	}
	defer f.Close()
	if err := tryLockShared(f); errors.Is(err, errLocked) {
		return hint.With(fmt.Errorf("%w: %s", ErrInUse, dir), "stop that etcd first")
	}
	return nil
}

// checkRoom refuses to begin what cannot fit.
func (t *stagedDir) checkRoom(size int64) error {
	need := uint64(max(size, 0))
	if t.walInside() || t.walBeside {
		return haveRoom(t.dir, need+walRoom)
	}
	if err := haveRoom(t.dir, need); err != nil {
		return err
	}
	return haveRoom(filepath.Dir(t.wal), walRoom)
}

func haveRoom(dir string, need uint64) error {
	if free, little := tooLittle(dir, need); little {
		return hint.With(fmt.Errorf("%w: %s has %d MiB free, the restore needs %d MiB", ErrNoSpace, dir, free>>20, need>>20),
			"free some, or restore to another filesystem")
	}
	return nil
}

// sweepStages removes the stages of restores that were killed. The lock of a
// stage speaks for its log outside of the target too.
func (t *stagedDir) sweepStages() {
	stages, _ := filepath.Glob(filepath.Join(t.dir, stagePrefix+"*"))
	for _, stage := range stages {
		lock, err := fileutil.TryLockFile(filepath.Join(stage, stageLock), os.O_RDWR, 0o600)
		if err != nil {
			continue // in use, or just being made
		}
		if !t.walInside() {
			log := filepath.Join(filepath.Dir(t.wal), filepath.Base(stage))
			_ = os.RemoveAll(log)
			_ = os.RemoveAll(log + ".tmp")
		}
		_ = os.RemoveAll(stage)
		_ = lock.Close()
	}
}

// commit moves what was built into place.
func (t *stagedDir) commit(opts RestoreOptions) error {
	if opts.Owner != nil {
		if err := t.chown(*opts.Owner); err != nil {
			return err
		}
	}
	if err := t.syncDirs(); err != nil {
		return err
	}
	now := opts.Now().UTC().Format(timeFormat)
	moves := [][2]string{{filepath.Join(t.stage, memberDir), filepath.Join(t.dir, memberDir)}}
	if t.walStage != "" {
		moves = append([][2]string{{t.walStage, t.wal}}, moves...)
	}
	var undo []func() error
	for _, m := range moves {
		back, err := t.place(m[0], m[1], now, opts.MoveAside)
		undo = append(undo, back...)
		if err == nil {
			err = wholefile.SyncDir(filepath.Dir(m[1])) // a member must not last without its log
			opts.Log.Debug(logPlaced, zap.String("path", m[1]))
		}
		if err != nil {
			for i := range undo {
				err = errors.Join(err, undo[len(undo)-1-i]())
			}
			return fmt.Errorf("put the member in place: %w", err)
		}
	}
	t.done = true
	if t.created {
		return wholefile.SyncDir(filepath.Dir(t.dir))
	}
	return nil
}

// place moves from to to, after moving aside what is there, if that is wanted.
// It returns how to undo what was done, also when it fails.
func (t *stagedDir) place(from, to, now string, moveAside bool) (undo []func() error, err error) {
	if _, err := os.Lstat(to); err == nil {
		if !moveAside {
			return nil, fmt.Errorf("%w: somebody else made %s meanwhile", ErrNotEmpty, to)
		}
		aside := to + asideInfix + now
		if _, err := os.Lstat(aside); err == nil {
			return nil, fmt.Errorf("%s exists already", aside)
		}
		if err := os.Rename(to, aside); err != nil {
			return nil, err
		}
		t.moved = append(t.moved, aside)
		undo = append(undo, func() error { return os.Rename(aside, to) })
	}
	if err := os.Rename(from, to); err != nil {
		return undo, err
	}
	return append(undo, func() error { return os.Rename(to, from) }), nil
}

// chown gives everything that was built to its owner.
func (t *stagedDir) chown(o Owner) error {
	roots := []string{filepath.Join(t.stage, memberDir)}
	if t.walStage != "" {
		roots = append(roots, t.walStage)
	}
	if t.created {
		if err := os.Lchown(t.dir, o.UID, o.GID); err != nil {
			return fmt.Errorf("set the owner: %w", err)
		}
	}
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, o.UID, o.GID)
		})
		if err != nil {
			return fmt.Errorf("set the owner: %w", err)
		}
	}
	return nil
}

// syncDirs makes the names of the built files last.
func (t *stagedDir) syncDirs() error {
	for _, dir := range []string{t.snapDir(), t.stagedWAL(), filepath.Join(t.stage, memberDir)} {
		if err := wholefile.SyncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// close removes the stage, and the whole target where nothing was put in place
// and it did not exist before.
func (t *stagedDir) close() error {
	var errs []error
	if t.lock != nil {
		errs = append(errs, os.RemoveAll(t.stage), t.lock.Close())
	}
	if t.walStage != "" && !t.done {
		errs = append(errs, os.RemoveAll(t.walStage), os.RemoveAll(t.walStage+".tmp"))
	}
	if t.created && !t.done {
		_ = os.Remove(t.dir) // only if empty
	}
	return errors.Join(errs...)
}
