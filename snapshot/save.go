package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/mvccdb"
	"github.com/etcdkit/etcdkit/internal/progress"
	"github.com/etcdkit/etcdkit/internal/store"
)

// Defaults of SaveOptions.
const (
	DefaultStallTimeout = 30 * time.Second
	DefaultMaxDuration  = time.Hour
)

// Causes of a save that did not happen.
var (
	ErrOptions  = errors.New("wrong options")
	ErrNoMember = errors.New("no member gave a snapshot")
	ErrTooLong  = errors.New("the save took longer than --max-duration")
)

// SaveOptions says how to take a backup. The zero value is a plain one.
type SaveOptions struct {
	Codec
	PartSize int64 // of a multipart upload; 0 means chosen from the database's size
	Parallel int
	Labels   map[string]string

	Stage         string     // folder for the encoded snapshot on its way; "" means none
	LimitUpload   int64      // bytes a second; needs Stage or HoldStream
	HoldStream    bool       // a slow upload may keep etcd's read transaction open
	Keep          bool       // mark the backup so that no pruning deletes it
	Overwrite     bool       // a FILE may be replaced whatever it is
	SkipUnchanged bool       // leave a small record instead where no revision was made since the last backup
	Lock          store.Lock // set on data and manifest once both are there

	Signing Signing // of the manifest beside a file; a repository has its own

	Runs       Runs
	StaleAfter time.Duration // see CleanOptions

	StallTimeout time.Duration // longest wait for etcd without a byte
	MaxDuration  time.Duration // of one stream, which keeps a read transaction open on the member

	examineFile bool // the stored file is examined afterwards, and the stream is not

	Host, ToolVersion string
	Now               func() time.Time
	Progress          progress.Func
}

// plan completes options and checks them.
func (o SaveOptions) plan() (SaveOptions, error) {
	if o.StallTimeout <= 0 {
		o.StallTimeout = DefaultStallTimeout
	}
	if o.MaxDuration <= 0 {
		o.MaxDuration = DefaultMaxDuration
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Progress == nil {
		o.Progress = progress.Discard
	}
	if o.LimitUpload > 0 && o.Stage == "" && !o.HoldStream {
		return o, hint.With(fmt.Errorf("%w: a limited upload would keep a read transaction open in etcd for as long as it takes", ErrOptions),
			"give --stage DIR to take the snapshot first, or --hold-stream to accept that")
	}
	for key := range o.Labels {
		if !validLabel(key) {
			return o, fmt.Errorf("%w: label %q: a key has up to 63 letters, digits, '.', '_', '-' and '/'", ErrOptions, key)
		}
	}
	if _, err := ParseCompression(o.Compression); err != nil {
		return o, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return o, nil
}

// Saved is the outcome of a save.
type Saved struct {
	Manifest  *Manifest
	Unchanged bool           // nothing was stored: Manifest is that of the backup that still holds
	Failed    []*MemberError // members that were tried in vain
	Warnings  []string
	Notes     []string
	Cleaned   []Leftover // of earlier runs
}

// sink takes the encoded bytes of a snapshot.
type sink struct {
	// put stores src only if that ends with io.EOF.
	put func(ctx context.Context, m *Manifest, src io.Reader, size int64) error
	// stored, if set, is called after put, before the member is asked for the
	// revision that it has by then.
	stored func(ctx context.Context, m *Manifest)
	// skip, if set, returns the manifest of a backup that makes one of this
	// member needless, or nil.
	skip func(c *candidate) *Manifest
	// again reports whether a second member's bytes may follow a first that
	// broke; nil means always.
	again func() bool
}

// take streams a snapshot from the best member into put, and from the next one
// when that fails by the member's fault.
func (s Source) take(ctx context.Context, opts SaveOptions, run string, put sink) (saved *Saved, err error) {
	usable, failed, err := s.candidates(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeAll(usable)) }()
	saved = &Saved{}
	for _, c := range failed {
		saved.Failed = append(saved.Failed, s.blame(ctx, c.endpoint, c.err))
	}
	for _, c := range usable {
		c.await(ctx, opts.StallTimeout)
		if put.skip != nil {
			if m := put.skip(c); m != nil {
				saved.Manifest, saved.Unchanged = m, true
				return saved, nil
			}
		}
		m, err := c.save(ctx, opts, run, put)
		if err == nil {
			saved.Manifest = m
			saved.warn(c)
			if m.unexamined != "" {
				saved.Warnings = append(saved.Warnings, fmt.Sprintf("the database was stored without being examined: %s; prove it with: etcdkit snapshot verify", m.unexamined))
			}
			return saved, nil
		}
		broken, ok := errors.AsType[*MemberError](err)
		if !ok || ctx.Err() != nil || errors.Is(err, ErrTooLong) || (put.again != nil && !put.again()) {
			return saved, fmt.Errorf("save snapshot: %w", err)
		}
		saved.Failed = append(saved.Failed, broken)
	}
	return saved, fmt.Errorf("save snapshot: %w: %w", ErrNoMember, saved.failures())
}

// failures joins why each member failed.
func (s *Saved) failures() error {
	var errs []error
	for _, f := range s.Failed {
		errs = append(errs, f)
	}
	return errors.Join(errs...)
}

func (s *Saved) warn(c *candidate) {
	if c.status.IsLearner {
		s.Warnings = append(s.Warnings, fmt.Sprintf(
			"%s is a learner: its state, at revision %d, may be old, and it does not count as a good backup; name a voting member", c.endpoint, c.revision))
		return
	}
	if !c.quorum {
		s.Warnings = append(s.Warnings, fmt.Sprintf(
			"no quorum: this is the state of %s alone, at revision %d, perhaps old; it does not count as a good backup", c.endpoint, c.revision))
	}
}

// save streams one member's snapshot into put. The error is a *MemberError if
// the member is to blame.
func (c *candidate) save(ctx context.Context, opts SaveOptions, run string, put sink) (*Manifest, error) {
	start := opts.Now().UTC()
	m := &Manifest{
		Schema: Schema, CreatedAt: start.Truncate(time.Millisecond),
		ClusterID: id(c.status.Header.GetClusterId()), MemberID: id(c.status.Header.GetMemberId()), MemberName: c.name(ctx),
		Endpoint: c.endpoint, Quorum: c.quorum, EtcdVersion: c.status.Version, StorageVersion: c.status.StorageVersion,
		RevisionBefore: c.revision, Compression: opts.Compression, Recipients: opts.names(), Labels: maps.Clone(opts.Labels), Keep: opts.Keep,
		Writer: Writer{Host: opts.Host, Run: run}, ToolVersion: opts.ToolVersion,
		appliedBefore: c.status.RaftAppliedIndex,
	}
	m.Name = baseName(start, c.status.Header.GetMemberId(), run)
	m.Data = m.Name + opts.ending()

	plain, err := c.stream(ctx, opts, m, put)
	if err != nil {
		return nil, err
	}
	m.SnapshotBytes, m.SnapshotSHA256 = plain.n, plain.sum
	if put.stored != nil {
		put.stored(ctx, m)
	}
	if m.RevisionAfter, err = c.revisionNow(context.WithoutCancel(ctx)); err != nil {
		return nil, &MemberError{c.endpoint, fmt.Errorf("ask for its revision after the snapshot: %w", err)}
	}
	m.TookSeconds = opts.Now().Sub(start).Seconds()
	return m, nil
}

// stream runs the snapshot through the codec into put.
func (c *candidate) stream(ctx context.Context, opts SaveOptions, m *Manifest, put sink) (*checked, error) {
	if opts.Stage != "" && !opts.compressed() {
		if err := room(opts.Stage, c.status.DbSize, "--stage"); err != nil {
			return nil, err
		}
	}
	// Only the stream is bounded: an upload from a stage may take longer. No
	// deadline is sent to the member, which would end the stream in its own words.
	streamCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	putCtx, cancelPut := context.WithCancelCause(ctx)
	defer cancelPut(nil)
	defer time.AfterFunc(opts.MaxDuration, func() {
		cancel(ErrTooLong)
		if opts.Stage == "" { // the stream is read only as fast as it is stored
			cancelPut(ErrTooLong)
		}
	}).Stop()
	opening := time.AfterFunc(opts.StallTimeout, func() { cancel(ErrStalled) })
	recv, err := c.open(streamCtx)
	opening.Stop()
	if err != nil {
		return nil, &MemberError{c.endpoint, fmt.Errorf("open snapshot: %w", err)}
	}
	source := &stream{recv: recv, ctx: streamCtx, cancel: cancel, stall: opts.StallTimeout, update: opts.Progress}
	plain := newChecked(source)
	if !opts.examineFile {
		plain.examiner = mvccdb.NewExaminer()
		plain.accept = m.accept
		defer plain.close() // after the encoder that reads it
	}
	encoded, err := opts.encode(plain)
	if err != nil {
		return nil, err
	}
	stored := newCounted(encoded)
	if opts.plain() {
		stored.hash = nil // what is stored is the snapshot, and that is hashed already
	}
	err = opts.staged(putCtx, stored, func(ctx context.Context, src io.Reader) error {
		return put.put(ctx, m, src, c.status.DbSize)
	})
	cancel(nil) // what still reads the stream is ended
	err = errors.Join(err, encoded.Close())
	m.StoredBytes, m.StoredSHA256 = stored.n, plain.sum
	if !opts.plain() {
		m.StoredSHA256 = stored.sum()
	}
	switch {
	case plain.err != nil && plain.err != io.EOF && err != nil && errors.Is(err, plain.err): //nolint:errorlint // only the bare EOF is an end
		return nil, &MemberError{c.endpoint, plain.err}
	case err != nil:
		return nil, err
	case plain.sum == "":
		return nil, fmt.Errorf("save snapshot: %w: it was stored before it ended", ErrIncomplete)
	}
	return plain, nil
}

// putOptions guides the upload of a snapshot of a database of size bytes.
func (o SaveOptions) putOptions(m *Manifest, size int64) store.PutOptions {
	return store.PutOptions{Size: size, PartSize: o.PartSize, Parallel: o.Parallel, Metadata: map[string]string{
		"etcd-version": m.EtcdVersion, "etcd-cluster-id": m.ClusterID, "etcd-member-id": m.MemberID,
		"etcd-revision-before": fmt.Sprint(m.RevisionBefore), "etcdkit-name": m.Name,
	}}
}
