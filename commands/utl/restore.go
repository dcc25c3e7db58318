package utl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/storage/backend"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/output"
	"github.com/etcdkit/etcdkit/snapshot"
)

// Sources opens what a restore can take beside files and data directories:
// backups in repositories.
type Sources interface {
	// Bind defines the flags that say how.
	Bind(cmd *cobra.Command)
	// Open opens a source. anyTrailer reads on where the SHA-256 at the end is
	// missing or wrong.
	Open(ctx context.Context, source string, anyTrailer bool) (*snapshot.Opened, error)
	// Signing returns whose signatures a source must have.
	Signing() (snapshot.Signing, error)
}

const restoreHelp = `Makes a data directory out of a snapshot, for one member of a new cluster. The
bytes are copied, hashed and checked once; the member is built inside the data
directory and moved into place as the last step, so that a restore that fails
leaves nothing behind. SOURCE is a snapshot file, a data directory, or a backup.
Of a data directory the write-ahead log is applied to its end.

Every member of the new cluster is restored by a run of its own, from the same
snapshot, with the same --initial-cluster: --plan shows the commands for all of
them. Where the keyspace is Kubernetes', the revision is moved on by one billion
and everything before counts as compacted, so that no client trusts what it has
cached (--bump-revision). Without --initial-cluster-token the token comes from
the snapshot, so that a forgotten member of the old cluster cannot join.

Exit codes: 0 restored, 1 failed, 2 wrong usage, 5 refused: the data directory is
not empty, or in use.`

const (
	defaultName    = "default"
	defaultPeerURL = "http://localhost:2380"
)

type restoreOptions struct {
	dataDir, walDir, name, cluster, token, peers string
	skipHash, compacted                          bool
	mmapSize, bump                               uint64

	// Native only.
	bumpText, owner string
	sourceWALDir    string
	moveAside, plan bool
	access          []string // the flags given that say how to open SOURCE
}

func newRestoreCmd(t *tree, sources Sources) *cobra.Command {
	var o restoreOptions
	cmd := &cobra.Command{
		Use:   "restore <filename> --data-dir {output dir} [options]",
		Short: "Restores an etcd member snapshot to an etcd directory",
	}
	cmd.RunE = t.run(func(ctx context.Context, args []string) error {
		o.access = accessFlags(cmd.Flags())
		if err := t.refuseEmpty(cmd.Flags()); err != nil {
			return err
		}
		return runRestore(ctx, t, sources, o, args)
	})
	o.bind(cmd.Flags())
	app.Must(cmd.MarkFlagDirname("data-dir"))
	app.Must(cmd.MarkFlagDirname("wal-dir"))
	if t.upstream() {
		o.bindUpstream(cmd.Flags())
		return cmd
	}
	o.bindNative(cmd.Flags())
	app.Must(cmd.MarkFlagDirname("source-wal-dir"))
	if sources != nil {
		sources.Bind(cmd)
	}
	cmd.Use = "restore SOURCE --data-dir DIR"
	return t.native(cmd, restoreHelp, `  etcdkit snapshot restore backup.db --data-dir /var/lib/etcd
  etcdkit snapshot restore backup.db --data-dir /var/lib/etcd --plan \
    --initial-cluster m1=https://10.0.0.1:2380,m2=https://10.0.0.2:2380`, cobra.ExactArgs(1))
}

func (o *restoreOptions) bind(fs *pflag.FlagSet) {
	fs.StringVar(&o.dataDir, "data-dir", "", "Path to the output data directory")
	fs.StringVar(&o.walDir, "wal-dir", "", "Path to the WAL directory (use --data-dir if none given)")
	fs.StringVar(&o.name, "name", defaultName, "Human-readable name for this member")
	fs.BoolVar(&o.skipHash, "skip-hash-check", false, "Ignore snapshot integrity hash value (required if copied from data directory)")
	fs.Uint64Var(&o.mmapSize, "initial-memory-map-size", backend.InitialMmapSize,
		"Initial memory map size of the database in bytes. It uses the default value if not defined or defined to 0")
	fs.BoolVar(&o.compacted, "mark-compacted", false,
		"Mark the latest revision after restore as the point of scheduled compaction (required if --bump-revision > 0, disallowed otherwise)")
}

func (o *restoreOptions) bindUpstream(fs *pflag.FlagSet) {
	fs.StringVar(&o.cluster, "initial-cluster", defaultName+"="+defaultPeerURL, "Initial cluster configuration for restore bootstrap")
	fs.StringVar(&o.token, "initial-cluster-token", "etcd-cluster", "Initial cluster token for the etcd cluster during restore bootstrap")
	fs.StringVar(&o.peers, "initial-advertise-peer-urls", defaultPeerURL, "List of this member's peer URLs to advertise to the rest of the cluster")
	fs.Uint64Var(&o.bump, "bump-revision", 0, "How much to increase the latest revision after restore")
}

func (o *restoreOptions) bindNative(fs *pflag.FlagSet) {
	fs.StringVar(&o.cluster, "initial-cluster", "", "all members, NAME=PEERURL,... (default this member alone)")
	fs.StringVar(&o.token, "initial-cluster-token", "", "token of the new cluster (default one made from the snapshot)")
	fs.StringVar(&o.peers, "initial-advertise-peer-urls", "", "this member's peer URLs (default those in --initial-cluster)")
	fs.StringVar(&o.bumpText, "bump-revision", "auto",
		"how far to move the revision on: a number, none, or auto (one billion and --mark-compacted for Kubernetes, else none)")
	fs.StringVar(&o.sourceWALDir, "source-wal-dir", "", "WAL directory of a SOURCE that is a data directory (default inside it)")
	fs.StringVar(&o.owner, "owner", "", "give the files to USER or USER:GROUP")
	fs.BoolVar(&o.moveAside, "move-aside", false, "keep a member that is in the data directory as member.old-TIME")
	fs.BoolVar(&o.plan, "plan", false, "restore nothing, show the commands for every member of the cluster")
}

func runRestore(ctx context.Context, t *tree, sources Sources, o restoreOptions, args []string) error {
	if t.upstream() {
		return upstreamRestore(ctx, t, o, args)
	}
	opts, err := o.native(t)
	if err != nil {
		return err
	}
	src, err := openRestoreSource(ctx, t, sources, args[0], o)
	if err != nil {
		return err
	}
	opts.Accept = src.accept(opts.Accept)
	if o.plan {
		return errors.Join(showPlan(ctx, t, o, opts, src), src.close())
	}
	for _, note := range src.notes {
		t.Note("%s", note)
	}
	update, done := t.meter("restoring " + args[0])
	opts.Progress = update
	r, err := snapshot.Restore(ctx, src.RestoreSource, opts)
	done()
	if err := errors.Join(err, src.close()); err != nil {
		return restoreError(err)
	}
	for _, l := range r.LeftAlone {
		t.Warn("%s", l)
	}
	if warning := ownerWarning(r); warning != "" {
		t.Warn("%s", warning)
	}
	return t.print(restored(r, startLine(opts, snapshot.PlannedMember{Name: opts.Name, PeerURLs: opts.PeerURLs})))
}

// refuseEmpty refuses a flag that was given without a value: a variable that is
// not set would else silently choose another cluster than the one meant.
func (t *tree) refuseEmpty(fs *pflag.FlagSet) error {
	if t.upstream() {
		return nil
	}
	for _, name := range []string{"data-dir", "wal-dir", "source-wal-dir", "name", "initial-cluster", "initial-cluster-token", "initial-advertise-peer-urls", "bump-revision", "owner"} {
		if f := fs.Lookup(name); f.Changed && f.Value.String() == "" {
			return cli.Usage(hint.With(fmt.Errorf("--%s is empty", name), "give it a value, or leave the flag out for its default"))
		}
	}
	return nil
}

// restoreError gives a failed restore its kind.
func restoreError(err error) error {
	if errors.Is(err, snapshot.ErrNotEmpty) || errors.Is(err, snapshot.ErrInUse) {
		return cli.Guard(err)
	}
	return err
}

// native reads the flags of etcdkit's restore.
func (o *restoreOptions) native(t *tree) (snapshot.RestoreOptions, error) {
	if o.cluster == "" {
		if o.peers == "" {
			o.peers = defaultPeerURL
		}
		o.cluster = clusterOf(o.name, o.peers)
	}
	if members := namesOf(o.cluster); o.plan && o.name == defaultName && !slices.Contains(members, o.name) {
		o.name = members[0] // a plan is for all of them
	}
	if o.peers == "" {
		o.peers = peersOf(o.cluster, o.name)
	}
	if o.peers == "" {
		err := fmt.Errorf("member %q is not in --initial-cluster", o.name)
		return snapshot.RestoreOptions{}, cli.Usage(hint.With(err, "--name must be one of %s", strings.Join(namesOf(o.cluster), ", ")))
	}
	if o.dataDir == "" {
		o.dataDir = o.name + ".etcd"
	}
	opts := o.common(t)
	bump, err := o.parseBump()
	if err != nil {
		return opts, err
	}
	opts.Bump, opts.MoveAside, opts.Accept = bump, o.moveAside, o.belongs
	if o.owner != "" {
		if opts.Owner, err = parseOwner(o.owner); err != nil {
			return opts, cli.Usage(err)
		}
	}
	if err := snapshot.CheckCluster(opts); err != nil {
		return opts, cli.Usage(hint.With(err, "--name must be one of the names in --initial-cluster, with the same peer URLs"))
	}
	return opts, nil
}

// belongs refuses a token that was made from another snapshot: the members of a
// plan would find together, and differ, where one of them got another file.
func (o *restoreOptions) belongs(c snapshot.Copied) error {
	own := c.Token()
	if o.token == own || !snapshot.IsToken(o.token) {
		return nil
	}
	return hint.With(fmt.Errorf("--initial-cluster-token %s was made from another snapshot, of this one it is %s", o.token, own),
		"restore every member from the same snapshot")
}

func (o *restoreOptions) common(t *tree) snapshot.RestoreOptions {
	return snapshot.RestoreOptions{
		DataDir: o.dataDir, WALDir: o.walDir, Name: o.name, PeerURLs: strings.Split(o.peers, ","),
		InitialCluster: o.cluster, Token: o.token, SkipHashCheck: o.skipHash, MmapSize: o.mmapSize, Log: t.log(), Now: t.Now,
	}
}

// clusterOf describes a cluster of one member.
func clusterOf(name, peers string) string {
	var all []string
	for url := range strings.SplitSeq(peers, ",") {
		all = append(all, name+"="+url)
	}
	return strings.Join(all, ",")
}

// namesOf returns the names of the members in the description of a cluster.
func namesOf(cluster string) []string {
	var names []string
	for part := range strings.SplitSeq(cluster, ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(part), "=")
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// peersOf returns the URLs of a member in the description of a cluster.
func peersOf(cluster, name string) string {
	var urls []string
	for part := range strings.SplitSeq(cluster, ",") {
		if n, url, ok := strings.Cut(strings.TrimSpace(part), "="); ok && n == name {
			urls = append(urls, url)
		}
	}
	return strings.Join(urls, ",")
}

func (o *restoreOptions) parseBump() (snapshot.Bump, error) {
	switch o.bumpText {
	case "auto":
		if o.compacted {
			return snapshot.Bump{}, cli.Usagef("--mark-compacted goes with a number for --bump-revision; auto decides both")
		}
		return snapshot.Bump{Auto: true}, nil
	case "none", "0":
		if o.compacted {
			return snapshot.Bump{}, cli.Usagef("--mark-compacted needs --bump-revision")
		}
		return snapshot.Bump{}, nil
	}
	by, err := strconv.ParseUint(o.bumpText, 10, 63)
	if err != nil {
		return snapshot.Bump{}, cli.Usagef("--bump-revision %q: a number, none or auto", o.bumpText)
	}
	if !o.compacted {
		return snapshot.Bump{}, cli.Usage(hint.With(errors.New("a bump without --mark-compacted would let watches see a gap"), "add --mark-compacted"))
	}
	return snapshot.Bump{By: by, Compacted: true}, nil
}

// upstreamRestore has upstream's order of checks and its words.
func upstreamRestore(ctx context.Context, t *tree, o restoreOptions, args []string) error {
	if len(args) != 1 {
		return badArgs("snapshot restore requires exactly one argument")
	}
	if (o.bump > 0) != o.compacted {
		return badArgs("--mark-compacted required if --revision-bump > 0")
	}
	if o.dataDir == "" {
		o.dataDir = o.name + ".etcd"
	}
	opts := o.common(t)
	opts.Bump = snapshot.Bump{By: o.bump, Compacted: o.compacted}
	src := &lazyFile{ctx: ctx, path: args[0]}
	_, err := snapshot.Restore(ctx, snapshot.RestoreSource{Name: args[0], Reader: src}, opts)
	err = errors.Join(err, src.close())
	if err == nil {
		return nil
	}
	return upstreamRestoreError(err, opts, src)
}

func upstreamRestoreError(err error, opts snapshot.RestoreOptions, src *lazyFile) error {
	const trailer = 32
	switch {
	case errors.Is(err, snapshot.ErrNotEmpty):
		if opts.WALDir != "" && strings.Contains(err.Error(), "WAL directory") {
			return fmt.Errorf("wal-dir %q exists", opts.WALDir)
		}
		return fmt.Errorf("data-dir %q not empty or could not be read", opts.DataDir)
	case src.opened && src.size < trailer:
		return fmt.Errorf("seek %s: invalid argument", src.path)
	case src.opened && !opts.SkipHashCheck && src.size%512 != trailer:
		return upstreamWords(snapshot.ErrNoTrailer)
	}
	return upstreamWords(err)
}

// lazyFile is a file that is opened when it is first read: upstream looks at
// the target before.
type lazyFile struct {
	ctx    context.Context // belongs to the one restore
	path   string
	opened bool
	size   int64
	f      *os.File
	stop   func() bool // of openUntil
}

// File opens the file.
func (l *lazyFile) File() (*os.File, error) {
	f, stop, err := openUntil(l.ctx, l.path)
	if err != nil {
		return nil, err
	}
	l.f, l.stop = f, stop
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, &fs.PathError{Op: "read", Path: l.path, Err: syscall.EISDIR}
	case info.Mode().IsRegular():
		l.opened, l.size = true, info.Size()
	}
	return f, nil
}

// Read is there for the type: File is asked first.
func (l *lazyFile) Read([]byte) (int, error) { return 0, os.ErrInvalid }

func (l *lazyFile) close() error {
	if l.f == nil {
		return nil
	}
	l.stop()
	return l.f.Close()
}

// restored shows what a restore made.
func restored(r *snapshot.Restored, start string) output.Result {
	v := restoredViewOf(r)
	v.Start = start
	return output.Result{JSON: v, Simple: v.simple}
}
