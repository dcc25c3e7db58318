package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/config"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/output"
	"github.com/etcdkit/etcdkit/internal/progress"
	"github.com/etcdkit/etcdkit/internal/store"
	toolversion "github.com/etcdkit/etcdkit/internal/version"
	"github.com/etcdkit/etcdkit/snapshot"
)

// saveFlags are the flags of snapshot save as they are typed.
type saveFlags struct {
	repoFlags
	snapshot.SaveOptions
	telling
	cluster   bool
	limit     byteSize
	partSize  byteSize
	labels    []string
	lockUntil string
	stale     longDuration
	metrics   []string
}

func newSnapshotSaveCmd(a *app.App) *cobra.Command {
	f := &saveFlags{}
	cmd := &cobra.Command{
		Use:   "save TARGET",
		Short: "Take a backup, checked while it streams, to a file, a folder, S3 or a pipe",
		Long: `Streams a snapshot to TARGET: a file, a folder ending in /, s3://BUCKET/PREFIX/,
@NAME of a configured repository, or - for standard output. Of several endpoints
it takes a follower that serves linearizable reads and is not being
defragmented, and the next one if that fails. Nothing broken is stored: the
SHA-256 at the snapshot's end is checked before the upload is completed. A file
is replaced only by a younger snapshot of its cluster. In a folder or bucket,
leftovers of killed runs are removed first, and --keep-* prunes after success.

Exit codes: 0 saved; 1 not saved, or saved but not pruned or locked; 2 wrong
usage or configuration; 5 TARGET is a file that must not be replaced.`,
		Example: "  etcdkit snapshot save backup.db\n" +
			"  etcdkit snapshot save s3://backups/prod/ --compress zstd --encrypt-to age1... --keep-daily 14 --keep-weekly 8\n" +
			"  etcdkit snapshot save - | ssh vault 'cat > etcd.db'",
		Args: cobra.ExactArgs(1),
		RunE: a.Run(func(ctx context.Context, args []string) error { return runSnapshotSave(ctx, a, f, args[0]) }),
	}
	f.bindS3(cmd, "")
	f.bindTrust()
	f.bindSigning()
	cmd.ValidArgsFunction = f.complete(a)
	f.bindEncryption()
	f.keep.bind(cmd.Flags())
	f.telling.bind(cmd.Flags())
	fs := cmd.Flags()
	fs.BoolVar(&f.cluster, "cluster", false, "consider every member of the cluster, not only the endpoints given")
	fs.StringSliceVar(&f.metrics, "metrics-urls", nil, "pages with the members' metrics, matched by host (default /metrics at each client URL)")
	config.Env(fs, "metrics-urls")
	fs.StringVar(&f.Compression, "compress", "", "compress: zstd, or zstd:1 to zstd:22")
	fs.StringArrayVar(&f.labels, "label", nil, "note KEY=VALUE in the manifest; may be repeated")
	fs.BoolVar(&f.Keep, "keep", false, "mark the backup so that no --keep-* rule deletes it, nor counts it")
	fs.BoolVar(&f.Overwrite, "overwrite", false, "replace the file TARGET even if it is not an older snapshot of the same cluster")
	fs.BoolVar(&f.SkipUnchanged, "skip-unchanged", false, "leave a small record instead if nothing was applied since the last backup")
	fs.StringVar(&f.Stage, "stage", "", "take the snapshot into this folder first, then upload it")
	fs.Var(&f.limit, "limit-upload", "bytes a second to upload at most, such as 20MiB; needs --stage or --hold-stream")
	fs.BoolVar(&f.HoldStream, "hold-stream", false, "let a limited upload keep etcd's snapshot stream open")
	fs.Var(&f.partSize, "part-size", "size of the parts of an upload (default by the size of the database)")
	fs.IntVar(&f.Parallel, "parallel", store.DefaultParallel, "parts to upload at once")
	fs.StringVar(&f.lockUntil, "lock-until", "", "protect the backup from deletion until then: a date, a time, or from now on such as 30d")
	fs.BoolVar(&f.Lock.LegalHold, "legal-hold", false, "protect the backup from deletion until the hold is taken off")
	fs.DurationVar(&f.StallTimeout, "stall-timeout", snapshot.DefaultStallTimeout, "give a member up when no byte came from it for so long")
	fs.DurationVar(&f.MaxDuration, "max-duration", snapshot.DefaultMaxDuration, "give up when the snapshot takes longer: it holds a read transaction in etcd")
	fs.Var(&f.stale, "stale-after", "age at which leftovers of other machines are removed (default 24h)")
	return cmd
}

func runSnapshotSave(ctx context.Context, a *app.App, f *saveFlags, target string) (err error) {
	start := a.Now()
	var done outcome
	var printed error // is not the backup's fault: monitoring is told of the backup
	defer func() { err = errors.Join(f.tell(ctx, a, done, start, err), printed) }()
	if isRepository(target) {
		if target, err = f.locate(a, target, ""); err != nil {
			return err
		}
	}
	opts, err := f.options(a)
	if err != nil {
		return err
	}
	src, err := f.source(ctx, a)
	if err != nil {
		return err
	}
	meter := progress.To(a.Err, a.Live, a.Now, "saving")
	if !a.Global.Quiet {
		opts.Progress = meter.Update
	}
	done.saved, err = f.save(ctx, a, src, target, opts)
	meter.Done()
	tellSaved(a, done.saved)
	if errors.Is(err, snapshot.ErrOverwrite) {
		return cli.Guard(err)
	}
	if err != nil {
		return storeKind(err)
	}
	done.target = target
	if policy := f.keep.policy(); isRepository(target) && !policy.IsZero() {
		done.pruned, err = f.prune(ctx, a, target, policy, done.saved)
		if err != nil {
			err = fmt.Errorf("the backup %s is saved, but pruning failed: %w", done.saved.Manifest.Name, err)
		}
	}
	if target == "-" {
		return err
	}
	printed = a.Print(savedResult(done))
	return err
}

// options completes what the flags say.
func (f *saveFlags) options(a *app.App) (snapshot.SaveOptions, error) {
	opts := f.SaveOptions
	var err error
	if opts.Recipients, err = f.recipients(a); err != nil {
		return opts, err
	}
	if _, err := snapshot.ParseCompression(opts.Compression); err != nil {
		return opts, cli.Usage(fmt.Errorf("--compress: %w", err))
	}
	if opts.Lock.Until, err = parseUntil(f.lockUntil, a.Now()); err != nil {
		return opts, cli.Usage(err)
	}
	for _, label := range f.labels {
		key, value, ok := strings.Cut(label, "=")
		if !ok || key == "" {
			return opts, cli.Usagef("--label %q is not KEY=VALUE", label)
		}
		if opts.Labels == nil {
			opts.Labels = map[string]string{}
		}
		opts.Labels[key] = value
	}
	if policy := f.keep.policy(); !policy.IsZero() {
		if err := policy.Validate(); err != nil {
			return opts, cli.Usage(err)
		}
	}
	if opts.Signing, err = f.signing(a); err != nil {
		return opts, err
	}
	opts.LimitUpload, opts.PartSize = int64(f.limit), int64(f.partSize)
	opts.StaleAfter, opts.Runs = time.Duration(f.stale), snapshot.Runs{Dir: runsDir(a)}
	opts.Host, _ = os.Hostname()
	opts.Now, opts.ToolVersion = a.Now, toolversion.String()
	return opts, nil
}

// source is the cluster that the flags mean.
func (f *saveFlags) source(ctx context.Context, a *app.App) (snapshot.Source, error) {
	conn, err := a.Connection()
	if err != nil {
		return snapshot.Source{}, err
	}
	if err := a.OneCluster(ctx, conn); err != nil {
		return snapshot.Source{}, err
	}
	doors, endpoints, err := a.Doors(ctx, f.metrics)
	if err != nil {
		return snapshot.Source{}, err
	}
	src := snapshot.Source{
		Endpoints: endpoints,
		Dial: func(ctx context.Context, endpoint string) (snapshot.Client, error) {
			return a.Dial(ctx, conn.At(endpoint))
		},
		Explain: doors.Explain,
		Defragmenting: func(ctx context.Context, endpoint string) (bool, error) {
			page, err := doors.Scrape(ctx, endpoint)
			return page.Defragmenting(), err
		},
	}
	if !f.cluster {
		return src, nil
	}
	members, err := a.ListMembers(ctx, conn)
	if err != nil {
		return src, fmt.Errorf("list members: %w", err)
	}
	src.Endpoints = nil
	for _, v := range a.Visits(ctx, conn, members) {
		src.Endpoints = append(src.Endpoints, v.Endpoint)
	}
	return src, nil
}

// save takes the snapshot to wherever target is.
func (f *saveFlags) save(ctx context.Context, a *app.App, src snapshot.Source, target string, opts snapshot.SaveOptions) (*snapshot.Saved, error) {
	if err := store.CheckPath(target); err != nil && !store.IsS3(target) {
		return nil, err
	}
	if err := f.fit(target, opts); err != nil {
		return nil, cli.Usage(err)
	}
	switch {
	case target == "-" && a.OutTTY:
		return nil, cli.Usage(hint.With(errors.New("a snapshot is not for a terminal"), "pipe it on, or name a file"))
	case target == "-":
		return snapshot.SaveTo(ctx, src, a.Out, opts)
	case isRepository(target):
		repo, err := f.open(ctx, a, target)
		if err != nil {
			return nil, err
		}
		return snapshot.Save(ctx, src, repo, opts)
	}
	if info, err := os.Stat(target); err == nil && info.IsDir() {
		return nil, cli.Usage(hint.With(fmt.Errorf("%s is a folder", target), "write %s/ to keep backups in it, or name a file", target))
	}
	return snapshot.SaveFile(ctx, src, target, opts)
}

// fit refuses flags that the target cannot follow, before anything is stored.
func (f *saveFlags) fit(target string, opts snapshot.SaveOptions) error {
	switch {
	case f.Parallel < 0:
		return fmt.Errorf("--parallel %d: parts to upload at once cannot be negative", f.Parallel)
	case int64(f.partSize) > store.MaxPartSize:
		return fmt.Errorf("--part-size %s: S3 takes parts of 5 GiB at most", output.Bytes(int64(f.partSize)))
	case f.StallTimeout < 0 || f.MaxDuration < 0:
		return errors.New("--stall-timeout and --max-duration cannot be negative")
	case opts.Lock != (store.Lock{}) && !store.IsS3(target):
		return errors.New("--lock-until and --legal-hold are for an S3 bucket with object lock")
	case (!f.keep.policy().IsZero() || f.SkipUnchanged || f.Keep) && !isRepository(target):
		return errors.New("--keep, --keep-* and --skip-unchanged are for a folder or bucket, not for a single file or a pipe")
	case opts.Signing.Key != nil && target == "-":
		return errors.New("--sign-with signs the manifest, and a pipe gets none")
	case opts.Signing.Trusting() && opts.Signing.Key == nil:
		return errors.New("--trust needs --sign-with here: the new backup would not be trusted itself")
	case f.Overwrite && (isRepository(target) || target == "-"):
		return errors.New("--overwrite is for a single file: in a folder or bucket every backup has a name of its own")
	}
	return nil
}

func (f *saveFlags) prune(ctx context.Context, a *app.App, target string, policy snapshot.Policy, saved *snapshot.Saved) (*snapshot.Pruned, error) {
	repo, err := f.open(ctx, a, target)
	if err != nil {
		return nil, err
	}
	own := saved.Manifest.Name
	if saved.Unchanged {
		own = ""
	}
	return snapshot.Prune(ctx, repo, snapshot.PruneOptions{
		Policy: policy, Cluster: saved.Manifest.ClusterID, Lineage: saved.Manifest.Lineage, Own: own,
		Runs: snapshot.Runs{Dir: runsDir(a)}, StaleAfter: time.Duration(f.stale), Now: a.Now,
	})
}

// tellSaved tells what did not go as it should on the way.
func tellSaved(a *app.App, saved *snapshot.Saved) {
	if saved == nil || saved.Manifest == nil {
		return // the error says it all
	}
	for _, failed := range saved.Failed {
		a.Warn("no snapshot from %v", failed)
	}
	for _, warning := range saved.Warnings {
		a.Warn("%s", warning)
	}
	for _, note := range saved.Notes {
		a.Note("%s", note)
	}
	for _, l := range saved.Cleaned {
		switch {
		case l.Removed:
			a.Note("removed %s: %s", l.Key, l.Reason)
		case l.Kept:
			a.Note("left %s alone: %s", l.Key, l.Reason)
		}
	}
}

func savedResult(o outcome) output.Result {
	m := o.saved.Manifest
	return output.Result{
		JSON: struct {
			*snapshot.Manifest
			Unchanged bool             `json:"unchanged"`
			Pruned    *snapshot.Pruned `json:"pruned,omitempty"`
		}{m, o.saved.Unchanged, o.pruned},
		Simple: func(w io.Writer) {
			if o.saved.Unchanged {
				fmt.Fprintf(w, "Unchanged since backup %s, revision %d\n", m.Name, m.RevisionAfter)
				return
			}
			fmt.Fprintf(w, "Saved %s from %s to %s\n", output.Bytes(m.SnapshotBytes), m.Endpoint, place(o.target, m))
			fmt.Fprintf(w, "%s, %s stored in %s, SHA-256 %s\n", revisionOf(m), output.Bytes(m.StoredBytes),
				output.Duration(time.Duration(m.TookSeconds*float64(time.Second))), m.StoredSHA256)
			if o.pruned != nil {
				fmt.Fprintf(w, "Pruned %d of %d backups\n", deleted(o.pruned), len(o.pruned.Decisions))
			}
		},
		Table: func() ([]string, [][]string) { return manifestTable(m) },
	}
}

// place is where a backup is.
func place(target string, m *snapshot.Manifest) string {
	if isRepository(target) {
		return strings.TrimSuffix(target, "/") + "/" + m.ClusterID + "/" + m.Data
	}
	return target
}

func deleted(p *snapshot.Pruned) (n int) {
	for _, d := range p.Decisions {
		if !d.Keep {
			n++
		}
	}
	return n
}

// parseUntil reads a date, a time, or a duration from now on.
func parseUntil(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			if !t.After(now) {
				return t, fmt.Errorf("--lock-until %s is in the past", s)
			}
			return t.UTC(), nil
		}
	}
	var d longDuration
	if err := d.Set(s); err != nil || d == 0 {
		return time.Time{}, fmt.Errorf("--lock-until %q is no date such as 2027-01-31, no time and no duration such as 30d", s)
	}
	return now.Add(time.Duration(d)).UTC().Truncate(time.Second), nil
}
