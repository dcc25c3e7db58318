package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/etcdkit/etcdkit/internal/store"
)

// SaveTo writes a snapshot, encoded as opts say, to w. If the member breaks
// after the first byte went out, nothing can take it back: that is the end.
func SaveTo(ctx context.Context, src Source, w io.Writer, opts SaveOptions) (*Saved, error) {
	opts, err := opts.plan()
	if err != nil {
		return nil, err
	}
	var written *counted
	return src.take(ctx, opts, newRun(), sink{
		put: func(_ context.Context, _ *Manifest, r io.Reader, _ int64) error {
			written = newCounted(r)
			return copyAll(w, written)
		},
		again: func() bool { return written.n == 0 },
	})
}

// SaveFile writes a snapshot to the file name, and its manifest beside it.
func SaveFile(ctx context.Context, src Source, name string, opts SaveOptions) (*Saved, error) {
	opts, err := opts.plan()
	if err != nil {
		return nil, err
	}
	folder, file := store.NewFolder(filepath.Dir(name)), filepath.Base(name)
	saved, err := src.take(ctx, opts, newRun(), sink{put: func(ctx context.Context, m *Manifest, r io.Reader, size int64) error {
		m.Data = file
		_, err := folder.Put(ctx, file, r, opts.putOptions(m, size))
		return err
	}})
	if err != nil {
		return saved, err
	}
	return saved, writeJSON(ctx, folder, file+manifestSuffix, saved.Manifest)
}

// Save takes a snapshot into a repository.
func Save(ctx context.Context, src Source, repo store.Store, opts SaveOptions) (*Saved, error) {
	opts, err := opts.plan()
	if err != nil {
		return nil, err
	}
	run := newRun()
	saved, err := src.take(ctx, opts, run, sink{put: func(ctx context.Context, m *Manifest, r io.Reader, size int64) error {
		_, err := repo.Put(ctx, m.ClusterID+"/"+m.Data, r, opts.putOptions(m, size))
		return err
	}})
	if err != nil {
		return saved, err
	}
	m := saved.Manifest
	if err := saved.setLineage(ctx, repo); err != nil {
		return saved, errors.Join(err, repo.Delete(context.WithoutCancel(ctx), m.ClusterID+"/"+m.Data))
	}
	if err := writeJSON(ctx, repo, m.ClusterID+"/"+m.Name+manifestSuffix, m); err != nil {
		return saved, errors.Join(fmt.Errorf("write manifest: %w", err), repo.Delete(context.WithoutCancel(ctx), m.ClusterID+"/"+m.Data))
	}
	return saved, nil
}
