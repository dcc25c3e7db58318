package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/mvccdb"
	"github.com/etcdkit/etcdkit/internal/regular"
)

// ErrOverwrite refuses to replace a file that is not an older snapshot of the
// same cluster.
var ErrOverwrite = errors.New("refusing to replace an existing file")

// mayReplace fails if name is a file that the snapshot which m describes must not
// take the place of. It returns what to say of the file that it replaces.
func (o SaveOptions) mayReplace(ctx context.Context, name string, m *Manifest) (notes []string, err error) {
	if o.Overwrite {
		return nil, nil
	}
	refuse := func(format string, args ...any) ([]string, error) {
		return nil, hint.With(fmt.Errorf("save snapshot: %w: %s", ErrOverwrite, fmt.Sprintf(format, args...)),
			"save under another name, or replace it with --overwrite")
	}
	info, err := os.Stat(name)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return nil, err
	}
	old, err := ManifestOf(name)
	if beside, statErr := os.Stat(name + manifestSuffix); statErr == nil && (err != nil || old == nil) {
		return refuse("%s, %d bytes, is not the manifest of a snapshot of that name", name+manifestSuffix, beside.Size())
	}
	switch {
	case err != nil:
		return nil, err
	case missing:
		return nil, nil
	case old == nil || old.StoredBytes != info.Size():
		if old, err = describeFile(ctx, name, info, m.MemberID); err != nil {
			return refuse("%s: %s", name, err)
		}
	case old.ClusterID != m.ClusterID:
		return refuse("%s is a snapshot of cluster %s, and this one is of %s", name, old.ClusterID, m.ClusterID)
	}
	if old.earliest() > m.RevisionBefore {
		return refuse("%s is at revision %d, and %s is only at %d", name, old.earliest(), m.Endpoint, m.RevisionBefore)
	}
	return []string{fmt.Sprintf("replaced the snapshot of %s at revision %d", old.CreatedAt.UTC().Format(time.RFC3339), old.earliest())}, nil
}

// describeFile looks into a snapshot without a manifest. It fails if that is none of
// the cluster that a member belongs to.
func describeFile(ctx context.Context, name string, info fs.FileInfo, member string) (*Manifest, error) {
	file, err := regular.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	db, err := mvccdb.Open(io.NewSectionReader(file, 0, info.Size()), info.Size())
	if err != nil {
		return nil, fmt.Errorf("it is not an etcd snapshot: %w", err)
	}
	state, err := db.State(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range state.Members {
		if id(m.ID) == member {
			report, err := db.Check(ctx, mvccdb.CheckOptions{SkipTrailer: true})
			if err != nil {
				return nil, err
			}
			return &Manifest{CreatedAt: info.ModTime(), Revision: report.Revision}, nil
		}
	}
	return nil, errors.New("it is a snapshot of a cluster without the member " + member)
}
