package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/etcdkit/etcdkit/internal/progress"
	"github.com/etcdkit/etcdkit/internal/store"
)

// CopyOptions says what to copy between two repositories.
type CopyOptions struct {
	Cluster  string   // "" means all
	Names    []string // of backups, or latest; none means all
	Progress progress.Func
}

// CopiedBackup is what became of one backup.
type CopiedBackup struct {
	Name       string `json:"name"`
	Copied     bool   `json:"copied"` // false: it is there already
	ServerSide bool   `json:"serverSide"`
	Bytes      int64  `json:"bytes"`
	Problem    string `json:"problem"` // why it was not copied
}

// ErrNotCopied tells that there is a backup that could not be looked at.
var ErrNotCopied = errors.New("not all backups were copied")

// CopyBackups copies backups from one repository to another, data first and the
// manifest last, checking what passes through against the manifest. What is
// there already is left alone, and so is, unless named, what is no whole backup.
func CopyBackups(ctx context.Context, from, to store.Store, opts CopyOptions) ([]CopiedBackup, error) {
	if opts.Progress == nil {
		opts.Progress = progress.Discard
	}
	wanted, err := chooseAll(ctx, from, opts)
	if err != nil {
		return nil, err
	}
	have, err := whole(ctx, to, wanted)
	if err != nil {
		return nil, err
	}
	copied := make([]CopiedBackup, len(wanted))
	var failed []error
	done := 0
	for i, b := range slices.Backward(wanted) { // the newest is missed most
		c := &copied[i]
		*c = CopiedBackup{Name: b.Name, Bytes: b.StoredBytes}
		switch {
		case b.Problem != "" && len(opts.Names) == 0:
			c.Problem = b.Problem
			if b.unread {
				failed = append(failed, fmt.Errorf("%w: %s: %s", ErrNotCopied, b.Name, b.Problem))
			}
		case !have[b.Name]:
			c.ServerSide, err = copyBackup(ctx, from, to, b)
			if err != nil {
				c.Problem = err.Error()
				failed = append(failed, fmt.Errorf("copy backup %s: %w", b.Name, err))
			}
			if ctx.Err() != nil || errors.Is(err, store.ErrUnreachable) {
				return copied[i:], errors.Join(failed...) // the others would fare no better
			}
			c.Copied = err == nil
		}
		done++
		opts.Progress(int64(done), int64(len(wanted)))
	}
	return copied, errors.Join(failed...)
}

// chooseAll returns the backups named, or all.
func chooseAll(ctx context.Context, from store.Store, opts CopyOptions) ([]*Backup, error) {
	l, err := readListing(ctx, from, opts.Cluster)
	if err != nil {
		return nil, err
	}
	if len(opts.Names) == 0 {
		return l.backups(ctx)
	}
	var chosen []*Backup
	for _, name := range opts.Names {
		b, _, err := l.choose(ctx, Choice{Cluster: opts.Cluster, Name: name})
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, b)
	}
	return chosen, nil
}

// whole returns the names of those backups that a repository has whole.
func whole(ctx context.Context, repo store.Store, wanted []*Backup) (map[string]bool, error) {
	l, err := readListing(ctx, repo, "")
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, b := range wanted {
		names[b.Name] = true
	}
	there, err := l.read(ctx, slices.DeleteFunc(l.manifests, func(o object) bool { return !names[o.base] }))
	have := map[string]bool{}
	for _, b := range there {
		have[b.Name] = b.Problem == ""
	}
	return have, err
}

func copyBackup(ctx context.Context, from, to store.Store, b *Backup) (serverSide bool, err error) {
	if b.Problem != "" {
		return false, fmt.Errorf("%w: %s", ErrIncomplete, b.Problem)
	}
	check := func(r io.Reader) io.Reader { return &expecting{counted: newCounted(r), manifest: &b.Manifest} }
	from, to = bare(from), bare(to) // a signature goes with what it signs, as it is
	serverSide, err = store.Copy(ctx, from, to, b.key(b.Data), check)
	if err != nil {
		return serverSide, err
	}
	for _, key := range slices.Concat(b.signatures, b.records, []string{b.key(b.Name + manifestSuffix)}) {
		if _, err := store.Copy(ctx, from, to, key, nil); err != nil {
			return serverSide, err
		}
	}
	return serverSide, nil
}

// expecting ends with io.EOF only if what passed is what the manifest says.
type expecting struct {
	*counted
	manifest *Manifest
}

func (e *expecting) Read(p []byte) (int, error) {
	n, err := e.counted.Read(p)
	if err == io.EOF && (e.n != e.manifest.StoredBytes || e.sum() != e.manifest.StoredSHA256) { //nolint:errorlint // only the bare EOF is an end
		return n, fmt.Errorf("%w: its data is not what the manifest describes", ErrIncomplete)
	}
	return n, err
}
