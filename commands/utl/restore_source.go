package utl

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"strings"

	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/snapshot"
)

// restoreSource is an opened SOURCE of a restore.
type restoreSource struct {
	snapshot.RestoreSource
	close     func() error
	accept    func(snapshot.Copied) error
	notes     []string
	unapplied *snapshot.LogState // of a data directory
}

// openRestoreSource opens a file, a data directory, or a backup.
func openRestoreSource(ctx context.Context, t *tree, sources Sources, name string, skipHash bool) (*restoreSource, error) {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir() && isDataDir(name):
		return openDataDir(ctx, t, name)
	case sources != nil:
		return openBackup(ctx, sources, name, skipHash)
	case err != nil:
		return nil, hint.With(err, "SOURCE is a snapshot file or a data directory")
	case info.IsDir():
		return nil, cli.Usagef("%s is a directory, but no data directory of etcd", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return &restoreSource{RestoreSource: snapshot.RestoreSource{Name: name, Reader: f, At: f, Size: info.Size()}, close: f.Close}, nil
}

func isDataDir(dir string) bool {
	_, err := os.Stat(snapshot.Database(dir))
	return err == nil
}

// openDataDir opens the database of a data directory, and looks at what its log
// holds beyond.
func openDataDir(ctx context.Context, t *tree, dir string) (*restoreSource, error) {
	f, err := snapshot.OpenFile(ctx, dir, t.lockWait)
	if err != nil {
		return nil, err
	}
	src := &restoreSource{RestoreSource: f.RestoreSource(), close: f.Close}
	log, err := f.LogState(ctx)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		src.notes = append(src.notes, dir+" has no write-ahead log: what was not in the database yet is lost")
	case err != nil:
		src.notes = append(src.notes, fmt.Sprintf("the write-ahead log cannot be read, what it holds beyond the database is not restored: %v", err))
	case log.Unapplied() > 0:
		src.notes = append(src.notes, log.String())
	}
	src.unapplied = log
	return src, nil
}

// openBackup opens a backup, or a file, with its manifest.
func openBackup(ctx context.Context, sources Sources, name string, skipHash bool) (*restoreSource, error) {
	o, err := sources.Open(ctx, name, skipHash)
	if err != nil {
		return nil, err
	}
	src := &restoreSource{RestoreSource: snapshot.RestoreSource{Name: o.Name, Reader: o, Size: o.Size}, close: o.Close, notes: o.Notes}
	if o.Manifest != nil && o.Manifest.SnapshotSHA256 != "" {
		src.accept = func(c snapshot.Copied) error {
			if got := hex.EncodeToString(c.FileSHA256[:]); got != o.Manifest.SnapshotSHA256 {
				return fmt.Errorf("%s: the snapshot's SHA-256 is %s, its manifest says %s", o.Name, got, o.Manifest.SnapshotSHA256)
			}
			return nil
		}
	}
	return src, nil
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
