package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/storage/mvcc"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/scratch"
)

// drillMember is the name of the embedded cluster's only member, and with an
// ending that of its data directory.
const (
	drillMember = "m1"
	drillPeer   = "http://localhost:2380" // only written into the data, nothing listens there
	bootTimeout = 10 * time.Minute
)

// drills are the folders of drills. A killed one's holds restored data.
func drills() scratch.Kind { return scratch.Kind{Prefix: "etcdkit-drill-", Marker: "in-use"} }

// drill restores the decoded snapshot, boots an etcd on it and compares what
// that serves with what the file says. How long the steps took is the recovery
// time.
func (v *Verification) drill(ctx context.Context, from *decoded, opts VerifyOptions) (err error) {
	folder, err := drills().New(opts.Scratch)
	if err != nil {
		return fmt.Errorf("make a folder for the drill: %w", err)
	}
	defer func() { err = errors.Join(folder.Dir().Named(err), folder.Remove()) }()
	dir := folder.Through()
	start := opts.Now()
	_, err = Restore(ctx, RestoreSource{Name: v.Name, Reader: io.NewSectionReader(from.file, 0, from.size), Size: from.size}, RestoreOptions{
		DataDir: filepath.Join(dir, drillMember+".etcd"), Name: drillMember, PeerURLs: []string{drillPeer},
		InitialCluster: drillMember + "=" + drillPeer, Now: opts.Now, Progress: opts.Progress,
	})
	switch {
	case ctx.Err() != nil:
		return errors.Join(err, context.Cause(ctx))
	case spoiled(err):
		v.add("restore", ResultBad, err.Error(), opts.Now().Sub(start))
		return nil
	case err != nil:
		return fmt.Errorf("restore %s for the drill: %w", v.Name, err)
	}
	v.add("restore", ResultOK, "", opts.Now().Sub(start))

	start = opts.Now()
	bootCtx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	cluster, err := embedded.Start(bootCtx, embedded.Options{Dir: dir})
	if ctx.Err() != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	if err != nil {
		return fmt.Errorf("boot an etcd on %s: %w", v.Name, err) // for want of a port, of time: not known to be the backup
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	v.add("boot", ResultOK, "", opts.Now().Sub(start))
	return v.compare(ctx, cluster.Members[0], opts)
}

// compare holds what a booted member serves against what the file says.
func (v *Verification) compare(ctx context.Context, m *embedded.Member, opts VerifyOptions) error {
	start := opts.Now()
	state, err := m.StateAt(ctx, v.Revision)
	took := opts.Now().Sub(start)
	switch {
	case errors.Is(err, mvcc.ErrFutureRev), errors.Is(err, mvcc.ErrCompacted):
		v.add("serve", ResultBad, fmt.Sprintf("etcd does not serve revision %d: %v", v.Revision, err), took)
	case err != nil:
		return fmt.Errorf("read what an etcd on %s serves: %w", v.Name, err)
	case state.Keys != *v.Keys:
		v.add("serve", ResultBad, fmt.Sprintf("etcd serves %d keys, the file has %d", state.Keys, *v.Keys), took)
	case state.Hash != *v.HashKV || state.CompactRevision != *v.CompactRevision:
		v.add("serve", ResultBad, fmt.Sprintf("etcd's hash is %d (compacted at %d), the file's %d (%d)",
			state.Hash, state.CompactRevision, *v.HashKV, *v.CompactRevision), took)
	default:
		v.Level = LevelRestored
		v.add("serve", ResultOK, fmt.Sprintf("%d keys at revision %d, the same hash", state.Keys, v.Revision), took)
	}
	return nil
}
