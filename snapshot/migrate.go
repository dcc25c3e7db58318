package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/coreos/go-semver/semver"
	"go.etcd.io/etcd/api/v3/version"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/datadir"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"

	"github.com/etcdkit/etcdkit/internal/hint"
)

// ParseTarget reads the version that a data directory is migrated to.
func ParseTarget(text string) (*semver.Version, error) {
	if strings.Count(text, ".") != 1 {
		return nil, fmt.Errorf(`wrong target version format, expected "X.Y", got %q`, text)
	}
	v, err := semver.NewVersion(text + ".0")
	if err != nil {
		return nil, fmt.Errorf("failed to parse target version: %w", err)
	}
	if v.LessThan(version.V3_5) {
		return nil, fmt.Errorf(`target version %q not supported. Minimal "3.5"`, minor(v))
	}
	return v, nil
}

func minor(v *semver.Version) string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// MigrateOptions says what Migrate does.
type MigrateOptions struct {
	DataDir string
	WALDir  string // "" means inside DataDir
	Target  *semver.Version
	// Bootable sees to it that the target boots on the result: it moves the
	// version of the cluster down too, and refuses a log that would move it up
	// again. Upstream's migrate does neither.
	Bootable bool
	Force    bool          // set the version even where the migration fails
	Wait     time.Duration // for a database that a running etcd holds; 0 is endless
	Log      *zap.Logger   // nil means none
}

// Migrated reports a migration.
type Migrated struct {
	From, To string
	Cluster  string // the version of the cluster before, "" where it was left
	Forced   error  // why it had to be forced, nil if not
}

// Migrate changes the storage version of a data directory that no etcd uses,
// so that another version of etcd can start on it.
func Migrate(ctx context.Context, opts MigrateOptions) (*Migrated, error) {
	if opts.Log == nil {
		opts.Log = zap.NewNop()
	}
	path := Database(opts.DataDir)
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	if err := checkBeforeWriting(ctx, opts.DataDir, opts.Wait); err != nil {
		return nil, err
	}
	if opts.WALDir == "" {
		opts.WALDir = datadir.ToWALDir(opts.DataDir)
	}
	if opts.Bootable && !opts.Force {
		if err := refuseNewerLog(ctx, opts); err != nil {
			return nil, err
		}
	}
	m := &Migrated{To: minor(opts.Target)}
	err := withBackend(path, opts.Wait, opts.Log, func(be backend.Backend) error { return m.run(be, opts) })
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Migrated) run(be backend.Backend, opts MigrateOptions) (err error) {
	log := opts.Log
	current, err := schema.DetectSchemaVersion(log, be.ReadTx())
	if err != nil {
		log.Error("failed to detect storage version. Please make sure you are using data dir from etcd v3.5 and older")
		return err
	}
	m.From = minor(&current)
	if opts.Bootable {
		defer func() {
			if err == nil {
				m.lowerCluster(be, opts)
			}
		}()
	}
	if current == *opts.Target {
		log.Info("storage version up-to-date", zap.String("storage-version", m.From))
		return nil
	}
	newest, err := walVersion(opts)
	if err != nil {
		log.Error("Failed to finalize config", zap.Error(err))
		return err
	}
	tx := be.BatchTx()
	if err := schema.Migrate(log, tx, newest, *opts.Target); err != nil {
		if !opts.Force {
			return err
		}
		log.Info("normal migrate failed, trying with force", zap.Error(err))
		m.Forced = err
		forceVersion(tx, opts)
	}
	be.ForceCommit()
	return nil
}

// lowerCluster moves the version of the cluster down to the target: an older etcd
// panics on a newer one. It moves up by itself when the members start.
func (m *Migrated) lowerCluster(be backend.Backend, opts MigrateOptions) {
	members := schema.NewMembershipBackend(opts.Log, be)
	members.MustCreateBackendBuckets()
	if v := members.ClusterVersionFromBackend(); v != nil && opts.Target.LessThan(*v) {
		m.Cluster = minor(v)
		members.MustSaveClusterVersionToBackend(opts.Target)
		be.ForceCommit()
	}
}

// refuseNewerLog refuses a log with an entry that sets a version of the cluster
// above the target. The target panics when it reads it, although the entry was
// applied long ago.
func refuseNewerLog(ctx context.Context, opts MigrateOptions) error {
	l, err := readLog(ctx, opts.WALDir)
	if err != nil {
		return hint.With(err, "if the log has a folder of its own, name it with --wal-dir")
	}
	if l.Damage != "" {
		return errors.New(l.Damage)
	}
	return l.entries(ctx, max(l.SnapshotIndex, l.begins-1), func(e *raftpb.Entry) error {
		v, err := clusterVersionOf(e)
		if err != nil || v == nil || !opts.Target.LessThan(*v) {
			return err
		}
		return hint.With(fmt.Errorf("the write-ahead log moves the cluster to version %s (entry %d), on which etcd %s panics", minor(v), e.GetIndex(), minor(opts.Target)),
			"make a directory with a new log, and migrate that one: etcdkit snapshot restore %s --data-dir NEW, then etcdkit migrate --data-dir NEW --target-version %s",
			opts.DataDir, minor(opts.Target))
	})
}

// forceVersion sets the version and changes nothing else.
func forceVersion(tx backend.BatchTx, opts MigrateOptions) {
	tx.LockOutsideApply()
	defer tx.Unlock()
	if opts.Target.LessThan(version.V3_6) { // which knows no storage version
		schema.UnsafeClearStorageVersion(tx)
		opts.Log.Warn("forcefully cleared storage version")
		return
	}
	schema.UnsafeSetStorageVersion(tx, opts.Target)
	opts.Log.Warn("forcefully set storage version", zap.String("storage-version", minor(opts.Target)))
}

// walVersion reads which version of etcd the entries of the log need.
func walVersion(opts MigrateOptions) (v wal.Version, err error) {
	dir := opts.WALDir
	snaps, err := wal.ValidSnapshotEntries(opts.Log, dir)
	if err != nil {
		return nil, fmt.Errorf("failed to get the lastest snapshot: %w", err)
	}
	last := &walpb.Snapshot{}
	if len(snaps) > 0 {
		last = snaps[len(snaps)-1]
	}
	w, err := wal.OpenForRead(opts.Log, dir, last)
	if err != nil {
		return nil, fmt.Errorf("failed to open wal: %w", err)
	}
	defer func() { _ = w.Close() }() // it was only read, and says so with an error
	if v, err = wal.ReadWALVersion(w); err != nil {
		return nil, fmt.Errorf("failed to read wal: %w", err)
	}
	return v, nil
}
