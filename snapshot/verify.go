package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"filippo.io/age"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/mvccdb"
	"github.com/etcdkit/etcdkit/internal/progress"
	"github.com/etcdkit/etcdkit/internal/regular"
	"github.com/etcdkit/etcdkit/internal/store"
)

// VerifyOptions says how deep to look.
type VerifyOptions struct {
	Level      Level // "" means decoded, or as deep as the identities allow
	Identities []age.Identity
	Scratch    string // folder for a decoded copy; "" means the system's for temporary files
	// NoRecord leaves no verification record in the repository.
	NoRecord    bool
	ToolVersion string
	Signing     Signing // of a file; a repository has its own
	Now         func() time.Time
	Progress    progress.Func
}

// subject is one backup under verification.
type subject struct {
	name     string
	manifest *Manifest // nil for a bare file
	open     func(ctx context.Context) (io.ReadCloser, error)
	file     string // path of the data where it is a local file, "" elsewhere
}

// Verify proves a backup of a repository and leaves a record beside it. The
// error is about what stood in the way of looking; what was found is in the
// verification.
func Verify(ctx context.Context, repo store.Store, b *Backup, opts VerifyOptions) (*Verification, error) {
	s := subject{name: b.Name, manifest: &b.Manifest}
	key := b.key(b.Data)
	s.open = func(ctx context.Context) (io.ReadCloser, error) {
		body, _, err := repo.Get(ctx, key)
		return body, err
	}
	if folder, ok := folderOf(repo); ok {
		s.file = folder.Path(key)
	}
	if b.Problem != "" {
		v := newVerification(s.name, opts)
		result := ResultBad
		if b.unread {
			result = ResultUnknown
		}
		v.add("stored", result, b.Problem, 0)
		return v.close(), nil
	}
	v, err := verify(ctx, s, opts)
	if err == nil && v.Result == ResultBad && !opts.NoRecord {
		// The record lets the backup be passed over and pruned. A fault of the disk or
		// the network that passes must not: a second look must find the same.
		v, err = verify(ctx, s, opts)
	}
	if err != nil || opts.NoRecord || v.Result == ResultUnknown {
		return v, err
	}
	record := b.key(b.Name + verifyInfix + v.At.Format(verifyFormat) + manifestSuffix)
	if err := writeJSON(ctx, repo, record, v); err != nil {
		return v, fmt.Errorf("write verification record: %w", err)
	}
	return v, nil
}

// VerifyFile proves a file, by the manifest beside it where there is one.
func VerifyFile(ctx context.Context, name string, opts VerifyOptions) (*Verification, error) {
	m, err := opts.Signing.ManifestOf(name)
	if errors.Is(err, ErrUntrusted) {
		v := newVerification(name, opts)
		v.add("signed", ResultBad, err.Error(), 0)
		return v.close(), nil
	}
	if err != nil {
		return nil, err
	}
	held, err := regular.Open(name)
	if err != nil {
		return nil, err
	}
	defer held.Close()
	if running, _ := mvccdb.IsHeldAlone(held); running {
		return nil, hint.With(fmt.Errorf("%s: %w by a running etcd", name, ErrLocked), "stop that etcd, or verify a snapshot of it")
	}
	folder, file := store.NewFolder(filepath.Dir(name)), filepath.Base(name)
	return verify(ctx, subject{name: name, manifest: m, file: name, open: func(ctx context.Context) (io.ReadCloser, error) {
		body, _, err := folder.Get(ctx, file)
		return body, err
	}}, opts)
}

func newVerification(name string, opts VerifyOptions) *Verification {
	return &Verification{Name: name, At: opts.Now().UTC().Truncate(time.Millisecond), ToolVersion: opts.ToolVersion}
}

func (v *Verification) add(name string, r Result, detail string, took time.Duration) {
	v.Checks = append(v.Checks, Check{Name: name, Result: r, Detail: detail, TookSeconds: took.Seconds()})
}

// close sums the checks up: bad beats unknown, unknown beats ok. Nothing
// checked is nothing known.
func (v *Verification) close() *Verification {
	v.Result = ResultOK
	if len(v.Checks) == 0 {
		v.Result = ResultUnknown
	}
	for _, c := range v.Checks {
		if c.Result == ResultBad || (c.Result == ResultUnknown && v.Result == ResultOK) {
			v.Result = c.Result
		}
	}
	v.OK = v.Result == ResultOK
	return v
}

func verify(ctx context.Context, s subject, opts VerifyOptions) (*Verification, error) {
	if opts.Progress == nil {
		opts.Progress = progress.Discard
	}
	left, err := drills().Sweep(opts.Scratch) // a killed drill's holds data, and takes space
	if err != nil {
		return nil, fmt.Errorf("verify %s: remove what a killed drill left: %w", s.name, err)
	}
	if err := room(opts.Scratch, s.scratchBytes(opts), "--scratch"); err != nil {
		return nil, fmt.Errorf("verify %s: %w", s.name, err)
	}
	v := newVerification(s.name, opts)
	v.LeftAlone = left
	from := &decoded{dir: opts.Scratch, flag: "--scratch"}
	defer from.remove()
	readable, err := v.checkBytes(ctx, s, opts, from)
	if err != nil || !readable || opts.Level == LevelStored || v.close().Result == ResultBad {
		return v.close(), err
	}
	if err := v.checkDatabase(ctx, s.manifest, opts, from); err != nil {
		return nil, err
	}
	if opts.Level == LevelRestored && v.close().OK {
		if err := v.drill(ctx, from, opts); err != nil {
			return nil, err
		}
	}
	return v.close(), nil
}

// scratchBytes is how much a verification writes: a decoded copy, unless the file
// itself can be looked into, and for a drill the restored member.
func (s subject) scratchBytes(opts VerifyOptions) (n int64) {
	m := s.manifest
	if m == nil || opts.Level == LevelStored || m.Encrypted() && len(opts.Identities) == 0 {
		return 0
	}
	if s.file == "" || m.Encrypted() || m.Compression != "" {
		n = m.SnapshotBytes
	}
	if opts.Level == LevelRestored {
		n += m.SnapshotBytes
	}
	return n
}

// checkBytes reads the data once, from the stored bytes to the SHA-256 at the
// snapshot's end, and keeps the decoded snapshot in scratch. It reports whether
// there is one to look into.
func (v *Verification) checkBytes(ctx context.Context, s subject, opts VerifyOptions, to *decoded) (readable bool, err error) {
	start := opts.Now()
	body, err := s.open(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	stored := newCounted(withContext{ctx, body})
	plain, decodeErr := s.decode(stored, opts, to)
	if decodeErr != nil && to.err != nil {
		return false, to.err
	}
	// Whatever the decoder made of it, the stored bytes are judged whole.
	_, _ = io.Copy(io.Discard, stored)
	if stored.err != nil {
		return false, fmt.Errorf("read %s: %w", s.name, stored.err) // not the backup's fault, as far as can be seen
	}
	v.checkStored(s.manifest, stored, opts.Now().Sub(start))
	if opts.Level == LevelStored {
		if s.manifest == nil {
			v.add("stored", ResultUnknown, "there is no manifest to hold the stored bytes against", opts.Now().Sub(start))
		}
		return false, nil
	}
	if errors.Is(decodeErr, ErrNoIdentity) {
		v.withoutIdentity(opts.Level != "" || len(opts.Identities) > 0, decodeErr)
		return false, nil
	}
	return v.checkSnapshot(s.manifest, plain, to.otherwise(decodeErr), opts.Now().Sub(start)), nil
}

// decode reads the snapshot to its end, into scratch unless the local file
// itself can be looked into, or nobody wants to.
func (s subject) decode(stored io.Reader, opts VerifyOptions, to *decoded) (*checked, error) {
	decoded, encoded, err := decode(stored, opts.Identities)
	if err != nil {
		return nil, err
	}
	defer decoded.Close()
	plain := newChecked(s.manifest.bound(decoded))
	switch {
	case opts.Level == LevelStored:
		return plain, copyAll(io.Discard, plain)
	case s.file != "" && !encoded:
		if err := to.use(s.file); err != nil {
			return plain, err
		}
		return plain, copyAll(io.Discard, plain)
	}
	return plain, to.fill(plain)
}

// checkStored holds the stored bytes against the manifest.
func (v *Verification) checkStored(m *Manifest, stored *counted, took time.Duration) {
	switch {
	case m == nil:
	case stored.n != m.StoredBytes || stored.sum() != m.StoredSHA256:
		v.add("stored", ResultBad, fmt.Sprintf("%d bytes with SHA-256 %s are stored, the manifest says %d with %s",
			stored.n, stored.sum(), m.StoredBytes, m.StoredSHA256), took)
	default:
		v.Level = LevelStored
		v.add("stored", ResultOK, fmt.Sprintf("%d bytes, SHA-256 as written", stored.n), took)
	}
}

// withoutIdentity ends a verification that cannot decrypt: a failure only if
// more was asked for, by a level or by an identity that does not fit.
func (v *Verification) withoutIdentity(asked bool, err error) {
	result := ResultOK
	if asked || v.Level == "" {
		result = ResultUnknown
	}
	v.add("decoded", result, "not looked at: "+err.Error(), 0)
}

// checkSnapshot judges how the decoded snapshot ended, and reports whether it
// is worth looking into.
func (v *Verification) checkSnapshot(m *Manifest, plain *checked, err error, took time.Duration) bool {
	switch {
	case err != nil && m == nil && plain != nil && plain.n > 0 && plain.n%mvccdb.TrailerUnit == 0:
		v.add("sha256", ResultUnknown, "the file has no SHA-256 at its end and no manifest: integrity unknown", took)
		return true
	case err != nil:
		v.add("sha256", ResultBad, err.Error(), took)
		return false
	case m != nil && (plain.n != m.SnapshotBytes || plain.sum != m.SnapshotSHA256):
		v.add("sha256", ResultBad, "the snapshot is whole, but not the one that the manifest describes", took)
		return false
	}
	v.add("sha256", ResultOK, fmt.Sprintf("%d bytes, SHA-256 at the end is right", plain.n), took)
	return true
}

// checkDatabase reads every page and revision of the decoded snapshot and
// holds what it finds against the manifest.
func (v *Verification) checkDatabase(ctx context.Context, m *Manifest, opts VerifyOptions, in *decoded) error {
	start := opts.Now()
	db, err := mvccdb.Open(in.file, in.size)
	switch {
	case spoiled(err):
		v.add("decoded", ResultBad, err.Error(), opts.Now().Sub(start))
		return nil
	case err != nil:
		return fmt.Errorf("read %s: %w", v.Name, err)
	}
	report, err := db.Check(ctx, mvccdb.CheckOptions{SkipTrailer: true, Progress: opts.Progress})
	if err != nil {
		return fmt.Errorf("read %s: %w", v.Name, err)
	}
	took := opts.Now().Sub(start)
	if report.DamageCount > 0 {
		v.add("decoded", ResultBad, fmt.Sprintf("%d faults, the first: %v", report.DamageCount, report.Damage[0]), took)
		return nil
	}
	v.take(report)
	if wrong := m.contradicts(report); wrong != "" {
		v.add("decoded", ResultBad, wrong, took)
		return nil
	}
	v.Level = LevelDecoded
	v.add("decoded", ResultOK, fmt.Sprintf("%d revisions of %d keys up to revision %d, hash %d",
		report.Revisions, report.LiveKeys, report.Revision, report.HashKV.Hash), took)
	return nil
}

// spoiled reports whether err is the backup's own fault. Whatever else goes
// wrong here, such as a full disk, must not make a good backup count as bad.
func spoiled(err error) bool {
	_, sum := errors.AsType[*ChecksumError](err)
	_, damage := errors.AsType[*DamageError](err)
	return sum || damage || errors.Is(err, mvccdb.ErrDamaged) || errors.Is(err, mvccdb.ErrNotDatabase) ||
		errors.Is(err, ErrNoTrailer) || errors.Is(err, ErrIncomplete)
}

// take keeps what the file says.
func (v *Verification) take(r *mvccdb.Report) {
	keys, hash, compact := int64(r.LiveKeys), r.HashKV.Hash, r.HashKV.CompactRevision
	v.Revision, v.Keys, v.HashKV, v.CompactRevision = r.Revision, &keys, &hash, &compact
}
