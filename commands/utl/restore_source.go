package utl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/regular"
	"github.com/etcdkit/etcdkit/snapshot"
)

// restoreSource is an opened SOURCE of a restore.
type restoreSource struct {
	snapshot.RestoreSource
	close    func() error
	notes    []string
	pinned   string             // names the same snapshot, later and elsewhere
	manifest *snapshot.Manifest // nil where there is none
	plain    bool               // the source is the snapshot itself, which nothing has held against the manifest
}

// openRestoreSource opens a file, a data directory, or a backup.
func openRestoreSource(ctx context.Context, t *tree, sources Sources, name string, o restoreOptions) (*restoreSource, error) {
	signing := snapshot.Signing{}
	if sources != nil {
		var err error
		if signing, err = sources.Signing(); err != nil {
			return nil, err
		}
	}
	info, err := os.Stat(name)
	dataDir := err == nil && info.IsDir() && isDataDir(name)
	if signing.Trusting() && (dataDir || err == nil && !info.IsDir() && !info.Mode().IsRegular()) {
		return nil, cli.Usagef("--trust is for backups: %s has no manifest that could be signed", name)
	}
	switch {
	case dataDir:
		return openDataDir(ctx, t, name, o.sourceWALDir)
	case o.sourceWALDir != "":
		return nil, cli.Usagef("--source-wal-dir is for a data directory as SOURCE; %s is none", name)
	case err != nil && !isLocation(name):
		return nil, hint.With(err, "SOURCE is a snapshot file, a data directory, a repository, or a backup in one")
	case err != nil || info.IsDir():
		return openBackup(ctx, sources, name, o.skipHash)
	}
	if !info.Mode().IsRegular() {
		return openPipe(ctx, name)
	}
	f, err := regular.Open(name)
	if err != nil {
		return nil, err
	}
	if err := snapshot.WaitLock(ctx, f, t.lockWait); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if snapshot.IsEncoded(f) {
		if err := f.Close(); err != nil {
			return nil, err
		}
		return openBackup(ctx, sources, name, o.skipHash)
	}
	src := &restoreSource{close: f.Close, pinned: name, plain: true}
	src.RestoreSource = snapshot.RestoreSource{Name: name, Reader: f, At: f, Size: info.Size()}
	if src.manifest, err = signing.ManifestOf(name); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if src.manifest != nil && !src.manifest.Quorum {
		src.notes = append(src.notes, "this backup was taken from a member without quorum and may be old")
	}
	return src, nil
}

// accept returns what has a word about the snapshot before it is restored.
func (s *restoreSource) accept(before func(snapshot.Copied) error) func(snapshot.Copied) error {
	return func(c snapshot.Copied) error {
		if s.manifest != nil && s.plain {
			if err := s.manifest.Describes(c); err != nil {
				return fmt.Errorf("%s: %w", s.Name, err)
			}
		}
		if s.manifest != nil && c.Report != nil {
			if err := s.manifest.Agrees(c.Report); err != nil {
				return fmt.Errorf("%s: %w", s.Name, err)
			}
		}
		return before(c)
	}
}

// openPipe opens a pipe or a device.
func openPipe(ctx context.Context, name string) (*restoreSource, error) {
	f, stop, err := openUntil(ctx, name)
	if err != nil {
		return nil, err
	}
	src := snapshot.RestoreSource{Name: name, Reader: pipe{ctx, f}}
	return &restoreSource{RestoreSource: src, pinned: name, close: func() error { stop(); return f.Close() }}, nil
}

// openUntil opens what may be a pipe. Neither the wait for somebody who writes
// into it nor the wait for what they write may outlive ctx; reading fails then.
func openUntil(ctx context.Context, name string) (f *os.File, stop func() bool, err error) {
	type opened struct {
		f   *os.File
		err error
	}
	done := make(chan opened, 1)
	go func() {
		f, err := os.Open(name)
		done <- opened{f, err}
	}()
	select {
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	case o := <-done:
		if o.err != nil {
			return nil, nil, o.err
		}
		return o.f, context.AfterFunc(ctx, func() { _ = o.f.SetReadDeadline(time.Unix(1, 0)) }), nil
	}
}

// pipe is read until ctx ends.
type pipe struct {
	ctx context.Context // belongs to the one reading
	f   *os.File
}

func (p pipe) Read(b []byte) (int, error) {
	n, err := p.f.Read(b)
	if err != nil && p.ctx.Err() != nil {
		err = context.Cause(p.ctx)
	}
	return n, err
}

// isLocation reports whether a name that is no file may still be a backup.
func isLocation(name string) bool {
	return strings.Contains(name, "://") || strings.HasPrefix(name, "@") || strings.ContainsRune(name, '/') || name == "latest"
}

func isDataDir(dir string) bool {
	_, err := os.Stat(snapshot.Database(dir))
	return err == nil
}

// openDataDir opens a data directory, its log included.
func openDataDir(ctx context.Context, t *tree, dir, walDir string) (*restoreSource, error) {
	d, err := snapshot.OpenDataDir(ctx, dir, walDir, t.lockWait)
	if err != nil {
		return nil, err
	}
	src := &restoreSource{RestoreSource: d.RestoreSource(), close: d.Close, pinned: dir}
	if d.Log.Torn {
		src.notes = append(src.notes, "the last record of the write-ahead log was cut off while it was written: it is dropped")
	}
	return src, nil
}

// openBackup opens a backup, or a file, with its manifest.
func openBackup(ctx context.Context, sources Sources, name string, skipHash bool) (*restoreSource, error) {
	o, err := sources.Open(ctx, name, skipHash)
	if err != nil {
		return nil, err
	}
	src := snapshot.RestoreSource{Name: o.Name, Reader: o, Size: o.Size}
	return &restoreSource{RestoreSource: src, close: o.Close, notes: o.Notes, pinned: o.Pinned(name), manifest: o.Manifest}, nil
}

// parseOwner reads USER or USER:GROUP, by name or number.
func parseOwner(text string) (*snapshot.Owner, error) {
	name, group, hasGroup := strings.Cut(text, ":")
	u, err := user.Lookup(name)
	if err != nil {
		if u, err = user.LookupId(name); err != nil {
			id, numErr := strconv.Atoi(name)
			if numErr != nil || !hasGroup {
				return nil, fmt.Errorf("--owner %q: no such user", name)
			}
			u = &user.User{Uid: strconv.Itoa(id)}
		}
	}
	gid := u.Gid
	if hasGroup {
		gid = group
		if g, err := user.LookupGroup(group); err == nil {
			gid = g.Gid
		}
	}
	o := &snapshot.Owner{}
	if o.UID, err = strconv.Atoi(u.Uid); err != nil {
		return nil, fmt.Errorf("--owner %q: this system has no numbers for users", text)
	}
	if o.GID, err = strconv.Atoi(gid); err != nil {
		return nil, fmt.Errorf("--owner %q: no such group", group)
	}
	return o, nil
}
