package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/output"
	"github.com/etcdkit/etcdkit/internal/progress"
	"github.com/etcdkit/etcdkit/internal/store"
	toolversion "github.com/etcdkit/etcdkit/internal/version"
	"github.com/etcdkit/etcdkit/snapshot"
)

// verifyFlags are the flags of snapshot verify.
type verifyFlags struct {
	repoFlags
	snapshot.VerifyOptions
	level       string
	drill       bool
	all, latest bool
	cluster     string
}

func newSnapshotVerifyCmd(a *app.App) *cobra.Command {
	f := &verifyFlags{}
	cmd := &cobra.Command{
		Use:   "verify REPO|FILE [NAME]",
		Short: "Prove that a backup restores",
		Long: `Proves backups of REPO (the latest, NAME, or with --all every one) or a FILE:

  stored     the stored bytes are those that were written
  decoded    decrypted and decompressed it is the snapshot that etcd sent, every
             page and revision of it can be read, and counts and hash are those
             of the manifest; the default
  restored   an etcd booted from it in a scratch folder serves the same keys at
             the same revision with the same hash (--drill); the times that the
             steps took are the recovery time

Each verification leaves a record beside the backup, which list, show and age
use. Without an identity an encrypted backup is verified to stored, and that is
said.

Exit codes: 0 proven; 2 wrong usage; 3 damaged; 4 it could not be read, has
neither a SHA-256 nor a manifest, no identity given fits, or the level asked
needs one.`,
		Example: "  etcdkit snapshot verify s3://backups/prod/ --identity key.txt\n" +
			"  etcdkit snapshot verify @main --drill --scratch /var/tmp\n  etcdkit snapshot verify backup.db",
		Args: cobra.RangeArgs(1, 2),
		RunE: a.Run(func(ctx context.Context, args []string) error { return unreachable(runSnapshotVerify(ctx, a, f, args)) }),
	}
	f.bindS3(cmd, "")
	f.bindTrust()
	cmd.ValidArgsFunction = f.completeBackups(a, 1)
	f.bindIdentity()
	f.bindSigning()
	fs := cmd.Flags()
	fs.StringVar(&f.level, "level", "", "stored, decoded or restored (default decoded, or as deep as the identities allow)")
	fs.BoolVar(&f.drill, "drill", false, "the same as --level restored")
	fs.BoolVar(&f.latest, "latest", false, "verify the latest backup (the default)")
	fs.BoolVar(&f.all, "all", false, "verify every backup")
	fs.StringVar(&f.Scratch, "scratch", "", "folder for decoded and restored copies (default the system's for temporary files)")
	fs.BoolVar(&f.NoRecord, "no-record", false, "leave no record beside the backup")
	bindCluster(fs, &f.cluster, "look only at backups of this cluster")
	return cmd
}

func runSnapshotVerify(ctx context.Context, a *app.App, f *verifyFlags, args []string) error {
	// First, for the repository's own settings: its identity is one.
	location, err := f.locate(a, args[0], "")
	if err != nil {
		return err
	}
	opts, err := f.options(a)
	if err != nil {
		return err
	}
	meter := progress.To(a.Err, a.Live, a.Now, "verifying")
	if !a.Global.Quiet {
		opts.Progress = meter.Update
	}
	defer meter.Done()
	if info, err := os.Stat(location); err == nil && info.Mode().IsRegular() && len(args) == 1 {
		v, err := snapshot.VerifyFile(ctx, location, opts)
		if err != nil {
			return err
		}
		meter.Done()
		return reportVerified(a, []*snapshot.Verification{v})
	}
	repo, err := f.existing(ctx, a, location)
	if err != nil {
		return err
	}
	chosen, err := f.choose(ctx, a, repo, args[1:])
	if err != nil {
		return err
	}
	results := []*snapshot.Verification{}
	var errs []error
	for _, b := range chosen {
		v, err := snapshot.Verify(ctx, repo, b, opts)
		if v != nil {
			results = append(results, v)
		}
		errs = append(errs, err)
		if ctx.Err() != nil || errors.Is(err, store.ErrUnreachable) {
			break // the others would fare no better
		}
	}
	meter.Done()
	return errors.Join(append(errs, reportVerified(a, results))...)
}

func (f *verifyFlags) options(a *app.App) (snapshot.VerifyOptions, error) {
	opts := f.VerifyOptions
	opts.Level = snapshot.Level(f.level)
	if f.latest && f.all {
		return opts, cli.Usagef("--latest and --all contradict each other")
	}
	if f.drill && f.level != "" && opts.Level != snapshot.LevelRestored {
		return opts, cli.Usagef("--level %s and --drill contradict each other", f.level)
	}
	if f.drill {
		opts.Level = snapshot.LevelRestored
	}
	switch opts.Level {
	case "", snapshot.LevelStored, snapshot.LevelDecoded, snapshot.LevelRestored:
	default:
		return opts, cli.Usagef("--level %q is none of stored, decoded, restored", f.level)
	}
	var err error
	if opts.Signing, err = f.signing(a); err != nil {
		return opts, err
	}
	if opts.Signing.Trusting() && opts.Signing.Key == nil && !opts.NoRecord {
		opts.NoRecord = true
		a.Note("no record is left: without --sign-with it would not be trusted")
	}
	ids, err := f.identities(a)
	opts.Identities, opts.Now, opts.ToolVersion = ids, a.Now, toolversion.String()
	return opts, err
}

// choose returns the backups to verify.
func (f *verifyFlags) choose(ctx context.Context, a *app.App, repo store.Store, names []string) ([]*snapshot.Backup, error) {
	if len(names) == 1 && f.all {
		return nil, cli.Usagef("--all and a name contradict each other")
	}
	if len(names) == 1 && f.latest {
		return nil, cli.Usagef("--latest and a name contradict each other")
	}
	if f.all {
		all, err := snapshot.List(ctx, repo, f.cluster)
		if err != nil {
			return nil, err
		}
		if len(all) == 0 {
			return nil, fmt.Errorf("verify: %w in %s", snapshot.ErrNoBackup, repo.URL())
		}
		return all, nil
	}
	name := "latest"
	if len(names) == 1 {
		name = names[0]
	}
	b, all, err := snapshot.Choose(ctx, repo, snapshot.Choice{Cluster: f.cluster, Name: name})
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		tellLineages(a, all)
	}
	return []*snapshot.Backup{b}, nil
}

// reportVerified prints the results; the error is the worst of them.
func reportVerified(a *app.App, results []*snapshot.Verification) error {
	bad, unknown := 0, 0
	for _, v := range results {
		for _, l := range v.LeftAlone {
			a.Warn("%s", l)
		}
		switch v.Result {
		case snapshot.ResultBad:
			bad++
		case snapshot.ResultUnknown:
			unknown++
		case snapshot.ResultOK:
		}
	}
	err := a.Print(verifyResult(results))
	switch {
	case bad > 0:
		return errors.Join(err, cli.Verdict(fmt.Errorf("%d of %d backups damaged", bad, len(results))))
	case unknown > 0:
		return errors.Join(err, cli.CannotTell(fmt.Errorf("%d of %d backups could not be verified", unknown, len(results))))
	}
	return err
}

func verifyResult(results []*snapshot.Verification) output.Result {
	return output.Result{
		JSON: struct {
			Results []*snapshot.Verification `json:"results"`
		}{results},
		Simple: func(w io.Writer) {
			for _, v := range results {
				level := string(v.Level)
				if level == "" {
					level = "nothing"
				}
				fmt.Fprintf(w, "%s: %s, verified to %s\n", v.Name, v.Result, level)
				for _, c := range v.Checks {
					fmt.Fprintf(w, "  %-8s %-8s %s (%.1f s)\n", c.Result, c.Name, c.Detail, c.TookSeconds)
				}
			}
		},
		Table: func() ([]string, [][]string) {
			var rows [][]string
			for _, v := range results {
				for _, c := range v.Checks {
					rows = append(rows, []string{v.Name, c.Name, string(c.Result), c.Detail, fmt.Sprintf("%.1fs", c.TookSeconds)})
				}
			}
			return []string{"backup", "check", "result", "detail", "took"}, rows
		},
	}
}
