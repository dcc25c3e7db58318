package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/mvccdb"
)

// ErrNoLog says that the log of a data directory is missing, is another
// member's, or does not continue the database.
var ErrNoLog = errors.New("the write-ahead log does not belong to the database")

// DataDir is a data directory opened for a restore: the newest database in it,
// and the log that continues it. No etcd can start on it until it is closed.
type DataDir struct {
	Path  string
	File  *File // the newest database: a leader may have sent one that was not put in place
	State *mvccdb.State
	Log   *LogState

	lock *File // of the database in its usual place
}

// OpenDataDir opens a data directory. walDir is where its log is, "" for the usual
// place. A running etcd is waited for; a wait of 0 is endless.
func OpenDataDir(ctx context.Context, path, walDir string, wait time.Duration) (*DataDir, error) {
	d, err := openDatabaseOf(ctx, path, wait)
	if err != nil {
		return nil, err
	}
	if err := d.readLog(ctx, walDir); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// openDatabaseOf opens the newest database of a data directory.
func openDatabaseOf(ctx context.Context, path string, wait time.Duration) (d *DataDir, err error) {
	file, err := OpenFile(ctx, path, wait)
	if err != nil {
		return nil, err
	}
	d = &DataDir{Path: path, File: file, lock: file}
	d.State, err = file.State(ctx)
	if err == nil {
		err = d.findNewerDatabase(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// readLog reads the log, and refuses one that does not continue the database.
func (d *DataDir) readLog(ctx context.Context, walDir string) (err error) {
	d.Log, err = readLog(ctx, cmp.Or(walDir, filepath.Join(d.Path, memberDir, "wal")))
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return d.withoutLog(err)
	}
	d.Log.Applied = d.State.ConsistentIndex
	if err := d.checkLog(); err != nil {
		return err
	}
	return d.checkMember(ctx)
}

// findNewerDatabase looks for databases that a leader has sent. etcd puts such a
// one in place when it has noted it in its log, and a kill may come between.
func (d *DataDir) findNewerDatabase(ctx context.Context) error {
	sent, err := filepath.Glob(filepath.Join(d.Path, memberDir, "snap", "*.snap.db"))
	if err != nil {
		return err
	}
	for _, name := range sent {
		var index uint64
		if _, err := fmt.Sscanf(filepath.Base(name), "%016x.snap.db", &index); err != nil || index <= d.State.ConsistentIndex {
			continue
		}
		file, state, err := openSent(ctx, name)
		if err == nil && state.ConsistentIndex < index {
			err = errors.Join(fmt.Errorf("it ends at entry %d, its name says %d", state.ConsistentIndex, index), file.Close())
		}
		if err != nil {
			return hint.With(fmt.Errorf("%s, which is newer than the database: %w", name, err),
				"move it away to restore without it, if the log still continues the database")
		}
		old := file
		if state.ConsistentIndex > d.State.ConsistentIndex {
			old, d.File, d.State = d.File, file, state
		}
		if old != d.lock {
			err = old.Close()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func openSent(ctx context.Context, name string) (*File, *mvccdb.State, error) {
	file, err := OpenFile(ctx, name, time.Second)
	if err != nil {
		return nil, nil, err
	}
	file.DataDir = filepath.Dir(name) // it has no SHA-256 at its end either
	state, err := file.State(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, state, nil
}

// checkLog refuses a log that does not continue the database.
func (d *DataDir) checkLog() error {
	l, index := d.Log, d.State.ConsistentIndex
	switch term, known := l.termOf(index); {
	case l.Damage != "":
		return d.withoutLog(errors.New(l.Damage))
	case l.Last < index:
		return d.withoutLog(fmt.Errorf("%w: %s ends at entry %d, the database holds entry %d", ErrNoLog, l.Dir, l.Last, index))
	case l.Last > index && l.begins > index+1:
		return d.withoutLog(fmt.Errorf("%w: %s begins at entry %d, the database ends at entry %d", ErrNoLog, l.Dir, l.begins, index))
	case known && d.State.Term != 0 && term != d.State.Term:
		return d.withoutLog(fmt.Errorf("%w: entry %d has term %d in %s, term %d in the database", ErrNoLog, index, term, l.Dir, d.State.Term))
	}
	return nil
}

// checkMember refuses the log of a member that neither the database nor the log
// itself knows: it is of another cluster.
func (d *DataDir) checkMember(ctx context.Context) error {
	known := len(d.State.Members) == 0 || slices.Contains(d.State.RemovedMembers, d.Log.MemberID) ||
		slices.ContainsFunc(d.State.Members, func(m mvccdb.Member) bool { return m.ID == d.Log.MemberID })
	if known {
		return nil
	}
	err := d.Log.entries(ctx, d.Log.Applied, func(e *raftpb.Entry) error {
		var change raftpb.ConfChange
		if e.GetType() == raftpb.EntryConfChange && proto.Unmarshal(e.GetData(), &change) == nil && change.GetNodeId() == d.Log.MemberID {
			return errFound
		}
		return nil
	})
	switch {
	case errors.Is(err, errFound):
		return nil
	case err != nil:
		return err
	}
	return d.withoutLog(fmt.Errorf("%w: %s is the log of member %s, which the database does not know", ErrNoLog, d.Log.Dir, id(d.Log.MemberID)))
}

// withoutLog says what can be done where the log cannot be used.
func (d *DataDir) withoutLog(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s: %w: %w", d.Path, ErrNoLog, err)
	}
	return hint.With(err, "name its folder with --source-wal-dir, or use another member's data directory; "+
		"the database alone, without what only the log holds, is restored with: etcdkit snapshot restore %s --skip-hash-check", d.File.Path)
}

// RestoreSource returns what a restore takes: the database and its log.
func (d *DataDir) RestoreSource() RestoreSource {
	src := d.File.RestoreSource()
	src.Name, src.Database, src.Log = d.Path, true, d.Log
	return src
}

// Close closes the files and frees their lock.
func (d *DataDir) Close() error {
	var err error
	if d.File != d.lock {
		err = d.File.Close()
	}
	return errors.Join(err, d.lock.Close())
}

// room returns how much a restore of the source writes, 0 if unknown. Pages that
// entries change are written anew; what they replace is free only afterwards.
func (s RestoreSource) room() int64 {
	if s.Log == nil || s.Log.Unapplied() == 0 {
		return s.Size
	}
	return s.Size + 2*s.Log.EntryBytes
}
