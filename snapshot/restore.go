package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/mvccdb"
	"github.com/etcdkit/etcdkit/internal/progress"
	"github.com/etcdkit/etcdkit/internal/scratch"
)

// KubernetesBump is how far a restore moves the revision on where the keyspace
// is Kubernetes'. It is a constant, because members are restored apart and
// must agree: a number that depended on the clock would let them differ
// without anybody noticing.
const KubernetesBump = 1_000_000_000

// The default token: a word, and so many digits of the snapshot's SHA-256.
const (
	tokenPrefix = "etcdkit-"
	tokenDigits = 12
)

// Sentinels of a restore.
var (
	ErrNotEmpty  = errors.New("the target is not empty")
	ErrNoTrailer = errors.New("the snapshot has no SHA-256 at its end")
	ErrNoSpace   = errors.New("not enough room")
	ErrInUse     = errors.New("a running etcd uses the data directory")
	ErrChanged   = errors.New("the file changed while it was read")
)

// ChecksumError says that a snapshot is not what etcd sent.
type ChecksumError struct{ Want, Got []byte }

func (e *ChecksumError) Error() string {
	return fmt.Sprintf("the snapshot's SHA-256 is %x, its end says %x: it was changed or damaged", e.Got, e.Want)
}

// DamageError says that a database is damaged, by the first of its faults.
type DamageError struct {
	First *mvccdb.Damage
	Count int
}

func (e *DamageError) Error() string {
	if e.Count > 1 {
		return fmt.Sprintf("%v (and %d more faults)", e.First, e.Count-1)
	}
	return e.First.Error()
}

func (e *DamageError) Unwrap() error { return e.First }

// Bump says whether a restore moves the revision on, so that no client can
// take the restored keyspace for one that it has seen already.
type Bump struct {
	// Auto bumps by KubernetesBump and marks compacted where the keyspace is
	// Kubernetes', whose clients cache by revision. By and Compacted are
	// ignored then.
	Auto      bool
	By        uint64
	Compacted bool // revisions up to the new one count as compacted
}

// RestoreSource is a snapshot to restore, as a stream of the bytes that etcd
// sent: decompressed and decrypted.
type RestoreSource struct {
	Name   string // for messages
	Reader io.Reader
	Size   int64 // 0 if unknown; for the progress and the check of free space
	// At, if set, reads the same bytes at any place. Only a plan needs it.
	At io.ReaderAt
	// Database tells that this is the database of a data directory, which
	// never has a trailing SHA-256.
	Database bool
	// Log, if set, continues the database: its entries are applied to the copy.
	Log *LogState
}

// RestoreOptions says what to make out of a snapshot.
type RestoreOptions struct {
	DataDir string
	WALDir  string // "" means inside DataDir

	Name           string
	PeerURLs       []string
	InitialCluster string
	Token          string // "" means one made from the snapshot's SHA-256

	SkipHashCheck bool
	Bump          Bump
	MoveAside     bool // keep an existing member directory under another name
	Owner         *Owner
	MmapSize      uint64 // 0 means etcd's default

	// Accept, if set, has a word before anything is put in place: whoever
	// knows what the snapshot should be compares.
	Accept   func(Copied) error
	Progress progress.Func
	Log      *zap.Logger // nil means none
	Now      func() time.Time
}

// Owner is who owns restored files.
type Owner struct{ UID, GID int }

// Copied is a snapshot as it arrived.
type Copied struct {
	FileSize       int64
	FileSHA256     [32]byte // of all bytes
	DatabaseSHA256 [32]byte // without the trailer, what the trailer says
	Trailer        []byte   // nil where there is none
	Report         *mvccdb.Report
	Replayed       *Replayed // nil where there was no log

	patches []mvccdb.Patch // of the copy
}

// Restored reports what a restore made.
type Restored struct {
	Source    string
	DataDir   string
	WALDir    string
	MovedTo   []string       // what was moved aside
	LeftAlone []scratch.Left // what looked like a killed restore's, and may not be
	Owner     *Owner         // of the files, nil where that is not known
	Before    *Owner         // of the member that was moved aside, or of the directory that was there
	Name      string
	MemberID  uint64
	ClusterID uint64
	Token     string
	PeerURLs  []string

	SourceRevision int64
	Revision       int64 // after the bump
	BumpedBy       uint64
	Compacted      bool // up to Revision
	Kubernetes     string

	Copied
	StaleKeys []string // of Kubernetes, which keep dead endpoints alive
}

// Restore makes a data directory out of a snapshot. The bytes are copied,
// hashed and checked once; the directory is built inside the target and moved
// into place as the last step, so that whatever fails leaves nothing behind.
// No server is started.
func Restore(ctx context.Context, src RestoreSource, opts RestoreOptions) (*Restored, error) {
	if opts.Log == nil {
		opts.Log = zap.NewNop()
	}
	if opts.Progress == nil {
		opts.Progress = progress.Discard
	}
	m, err := newNewMember(opts)
	if err != nil {
		return nil, err
	}
	t, err := openStagedDir(opts, src.room())
	if err != nil {
		return nil, err
	}
	r, err := restore(ctx, src, opts, m, t)
	err = t.named(err)
	return r, errors.Join(err, t.close())
}

func restore(ctx context.Context, src RestoreSource, opts RestoreOptions, m *newMember, t *stagedDir) (*Restored, error) {
	opts.Log.Info("restoring snapshot", zap.String("path", src.Name), zap.String("wal-dir", t.wal), zap.String("data-dir", t.dir))
	r := &Restored{Source: src.Name, DataDir: t.dir, WALDir: t.wal, Name: opts.Name, PeerURLs: opts.PeerURLs}
	seen := newKeyWatch()
	copied, err := copyDatabase(ctx, src, t, opts, seen)
	if err != nil {
		return nil, err
	}
	if err := copied.replay(ctx, src, t.database(), opts.Log, &seen); err != nil {
		return nil, err
	}
	r.Copied = *copied
	if opts.Accept != nil {
		if err := opts.Accept(*copied); err != nil {
			return nil, err
		}
	}
	r.Kubernetes, r.StaleKeys = seen.prefix(), seen.stale()
	if err := r.setRevision(opts.Bump); err != nil {
		return nil, err
	}
	if r.Token = opts.Token; r.Token == "" {
		r.Token = copied.Token()
	}
	if err := m.build(t, r); err != nil {
		return nil, err
	}
	if err := t.commit(opts); err != nil {
		return nil, err
	}
	r.MovedTo, r.LeftAlone = t.moved, t.left
	r.Owner = ownerOf(filepath.Join(t.dir, memberDir))
	if len(t.moved) > 0 {
		r.Before = ownerOf(t.moved[len(t.moved)-1])
	} else if !t.created {
		r.Before = ownerOf(t.dir)
	}
	opts.Log.Info("restored snapshot", zap.String("path", src.Name), zap.String("wal-dir", t.wal), zap.String("data-dir", t.dir))
	return r, nil
}

// Token returns the cluster token that a restore uses when none is given. It
// is the same for every member restored from one snapshot, and another one
// than that of the old cluster, so that a forgotten member on old data cannot
// join. Entries of a log that were applied count like the database.
func (c *Copied) Token() string {
	sum := c.DatabaseSHA256
	if c.Replayed != nil && c.Replayed.Entries > 0 {
		sum = sha256.Sum256(append(sum[:], c.Replayed.digest[:]...))
	}
	return tokenPrefix + hex.EncodeToString(sum[:])[:tokenDigits]
}

// IsToken reports whether a token is one that Token makes.
func IsToken(token string) bool {
	digits, ok := strings.CutPrefix(token, tokenPrefix)
	return ok && isHex(digits, tokenDigits)
}

// setRevision decides where the revision goes.
func (r *Restored) setRevision(b Bump) error {
	r.SourceRevision = r.Report.Revision
	if b.Auto {
		b = Bump{}
		if r.Kubernetes != "" {
			b = Bump{By: KubernetesBump, Compacted: true}
		}
	}
	const most = 1<<63 - 1
	if b.By > most-uint64(r.SourceRevision) {
		return fmt.Errorf("bump the revision: %d and %d is past the largest revision", r.SourceRevision, b.By)
	}
	r.BumpedBy, r.Compacted = b.By, b.Compacted
	r.Revision = r.SourceRevision + int64(b.By)
	return nil
}

// judge turns what is wrong with a copied snapshot into an error.
func (c *Copied) judge(src RestoreSource, skipHash bool) error {
	switch {
	case c.Trailer == nil && !skipHash && !src.Database:
		return hint.With(fmt.Errorf("%s: %w", src.Name, ErrNoTrailer),
			"it was cut off, or copied from a data directory: for the latter, --skip-hash-check restores it unproven")
	case c.Trailer != nil && !skipHash && string(c.Trailer) != string(c.DatabaseSHA256[:]):
		return hint.With(fmt.Errorf("%s: %w", src.Name, &ChecksumError{Want: c.Trailer, Got: c.DatabaseSHA256[:]}),
			"use another backup; --skip-hash-check restores what is there")
	}
	return nil
}
