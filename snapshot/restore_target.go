package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.uber.org/zap"

	"github.com/etcdkit/etcdkit/internal/dirfd"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/scratch"
	"github.com/etcdkit/etcdkit/internal/wholefile"
)

// Names inside a target directory.
const (
	memberDir    = "member"
	asideInfix   = ".old-"
	stagePrefix  = ".etcdkit-restore-"
	stagedLog    = "wal" // name of a log in the stage beside the member
	lostAndFound = "lost+found"
	// walRoom is what etcd preallocates for its log: the first segment, and
	// the next one as soon as it starts.
	walRoom = 2 * 64 << 20
	// logPlaced is logged after each move into place.
	logPlaced = "moved into place"
)

// stages are the folders in which restores build.
func stages() scratch.Kind { return scratch.Kind{Prefix: stagePrefix, Marker: "in-use"} }

// stagedDir is a data directory in the making. Everything is built in a stage
// inside of it, because it may be a mount point, which no other directory can
// be renamed over. The target and the folder of a log outside are opened once;
// what is built is reached through the handles of the stages.
type stagedDir struct {
	dir, wal  string
	at        *dirfd.Dir      // dir
	folder    *scratch.Folder // the stage, in dir
	stage     string          // its path, whatever happens to its name
	walBelow  string          // where the log is in the member directory, "" where it is not
	walBeside bool            // the log is in dir, beside the member directory
	walAt     *dirfd.Dir      // holds a log that is outside of dir
	walFolder *scratch.Folder // the stage of such a log
	created   bool            // dir is our own
	done      bool
	moved     []string
	left      []scratch.Left // what looked like a dead stage, and may not be ours
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
	if err := t.open(); err != nil {
		return nil, err
	}
	if err := t.sweepStages(); err != nil {
		return nil, err
	}
	if err := t.checkRoom(size); err != nil {
		return nil, err
	}
	return t, t.named(t.makeStage())
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

// open opens the folders that the member and its log go to.
func (t *stagedDir) open() (err error) {
	if t.at, err = dirfd.Open(t.dir); err != nil {
		return fmt.Errorf("open the data directory: %w", err)
	}
	if t.walInside() || t.walBeside {
		return nil
	}
	parent := filepath.Dir(t.wal)
	if err := os.MkdirAll(parent, fileutil.PrivateDirMode); err != nil {
		return fmt.Errorf("create the folder of the log: %w", err)
	}
	if t.walAt, err = dirfd.Open(parent); err != nil {
		return fmt.Errorf("open the folder of the log: %w", err)
	}
	return nil
}

// makeStage makes the directories that a member's files go to.
func (t *stagedDir) makeStage() (err error) {
	if t.folder, err = stages().NewIn(t.at); err != nil {
		return fmt.Errorf("make a folder in the data directory: %w", err)
	}
	t.stage = t.folder.Through()
	if t.walAt != nil {
		if t.walFolder, err = stages().NewIn(t.walAt); err != nil {
			return fmt.Errorf("make a folder for the log: %w", err)
		}
	}
	if err := os.MkdirAll(filepath.Join(t.stage, memberDir, "snap"), fileutil.PrivateDirMode); err != nil {
		return fmt.Errorf("create the data directory: %w", err)
	}
	return nil
}

func (t *stagedDir) database() string { return filepath.Join(t.snapDir(), "db") }
func (t *stagedDir) snapDir() string  { return filepath.Join(t.stage, memberDir, "snap") }

// stagedWAL is where the log is built.
func (t *stagedDir) stagedWAL() string {
	switch {
	case t.walFolder != nil:
		return filepath.Join(t.walFolder.Through(), stagedLog)
	case t.walBeside:
		return filepath.Join(t.stage, stagedLog)
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
		case moveAside: // of somebody else: it stays where it is
		default:
			return hint.With(fmt.Errorf("%w: %s holds %q", ErrNotEmpty, t.dir, name),
				"choose a directory that is empty or does not exist; --move-aside leaves what is not etcd's where it is")
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

// checkRoom refuses to begin what cannot fit.
func (t *stagedDir) checkRoom(size int64) error {
	need := uint64(max(size, 0))
	if t.walAt == nil {
		return haveRoom(t.dir, need+walRoom)
	}
	if err := haveRoom(t.dir, need); err != nil {
		return err
	}
	return haveRoom(t.walAt.Path(), walRoom)
}

func haveRoom(dir string, need uint64) error {
	if free, little := tooLittle(dir, need); little {
		return hint.With(fmt.Errorf("%w: %s has %d MiB free, the restore needs %d MiB", ErrNoSpace, dir, free>>20, need>>20),
			"free some, or restore to another filesystem")
	}
	return nil
}

// sweepStages removes the stages of restores that were killed.
func (t *stagedDir) sweepStages() error {
	for _, dir := range []*dirfd.Dir{t.at, t.walAt} {
		if dir == nil {
			continue
		}
		left, err := stages().SweepIn(dir)
		if err != nil {
			return fmt.Errorf("remove what a killed restore left: %w", err)
		}
		t.left = append(t.left, left...)
	}
	return nil
}

// A move puts something that was built into place.
type move struct {
	from     *dirfd.Dir
	fromName string
	to       *dirfd.Dir
	toName   string
}

// moves returns what goes into place, the log first.
func (t *stagedDir) moves() []move {
	member := move{t.folder.Dir(), memberDir, t.at, memberDir}
	switch {
	case t.walFolder != nil:
		return []move{{t.walFolder.Dir(), stagedLog, t.walAt, filepath.Base(t.wal)}, member}
	case t.walBeside:
		return []move{{t.folder.Dir(), stagedLog, t.at, filepath.Base(t.wal)}, member}
	}
	return []move{member}
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
	var undo []func() error
	for _, m := range t.moves() {
		back, err := t.place(m, now, opts.MoveAside)
		undo = append(undo, back...)
		if err == nil {
			err = m.to.Sync() // a member must not last without its log
			opts.Log.Debug(logPlaced, zap.String("path", filepath.Join(m.to.Path(), m.toName)))
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

// place makes a move, after moving aside what is there, if that is wanted. It
// returns how to undo what was done, also when it fails.
func (t *stagedDir) place(m move, now string, moveAside bool) (undo []func() error, err error) {
	to := filepath.Join(m.to.Path(), m.toName)
	if _, err := m.to.Lstat(m.toName); err == nil {
		if !moveAside {
			return nil, fmt.Errorf("%w: somebody else made %s meanwhile", ErrNotEmpty, to)
		}
		aside := m.toName + asideInfix + now
		if err := m.to.RenameNew(m.toName, m.to, aside); err != nil {
			return nil, err
		}
		t.moved = append(t.moved, to+asideInfix+now)
		undo = append(undo, func() error { return m.to.RenameNew(aside, m.to, m.toName) })
	}
	if err := m.from.RenameNew(m.fromName, m.to, m.toName); err != nil {
		return undo, err
	}
	return append(undo, func() error { return m.to.RenameNew(m.toName, m.from, m.fromName) }), nil
}

// chown gives everything that was built to its owner.
func (t *stagedDir) chown(o Owner) error {
	roots := []string{filepath.Join(t.stage, memberDir)}
	if !t.walInside() {
		roots = append(roots, t.stagedWAL())
	}
	if t.created {
		if err := t.at.Chown(o.UID, o.GID); err != nil {
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

// close removes the stages, and the whole target where nothing was put in place
// and it did not exist before.
func (t *stagedDir) close() error {
	var errs []error
	for _, f := range []*scratch.Folder{t.folder, t.walFolder} {
		if f != nil {
			errs = append(errs, f.Remove())
		}
	}
	for _, dir := range []*dirfd.Dir{t.at, t.walAt} {
		if dir != nil {
			errs = append(errs, dir.Close())
		}
	}
	if t.created && !t.done {
		_ = dirfd.RemoveFolder(t.dir) // only if empty
	}
	return errors.Join(errs...)
}

// named returns err with paths that mean something to a reader, and names the
// target where err does not say what failed.
func (t *stagedDir) named(err error) error {
	for _, f := range []*scratch.Folder{t.folder, t.walFolder} {
		if f != nil {
			err = f.Dir().Named(err)
		}
	}
	if err == nil {
		return nil
	}
	if errno := syscall.Errno(0); errors.As(err, &errno) && !strings.Contains(err.Error(), t.dir) {
		return fmt.Errorf("restore to %s: %w", t.dir, err)
	}
	return err
}
