package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/health"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/progress"
	"github.com/etcdkit/etcdkit/snapshot"
)

// upgradeFlags are the flags of health that ask whether the cluster is ready for
// a step.
type upgradeFlags struct {
	to, snapshot, repository string
	repo                     repoFlags
}

func (u *upgradeFlags) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	steps := strings.Join(health.UpgradeSteps(), " or ")
	f.StringVar(&u.to, "upgrade-to", "", "judge whether the cluster is ready for an upgrade to "+steps)
	f.StringVar(&u.snapshot, "snapshot", "", "with --upgrade-to: a snapshot file taken now, whose members are compared with the member list")
	f.StringVar(&u.repository, "repository", "", "with --upgrade-to: the repository (folder, URL or @NAME) that must hold a backup younger than a day")
	u.repo.bindS3(cmd, "")
	u.repo.bindTrust()
	app.CompleteValues(cmd, "upgrade-to", health.UpgradeSteps()...)
}

func (u *upgradeFlags) check(watching bool) error {
	switch {
	case u.to == "" && (u.snapshot != "" || u.repository != ""):
		return cli.Usagef("--snapshot and --repository go with --upgrade-to")
	case u.to == "":
		return nil
	case !slices.Contains(health.UpgradeSteps(), u.to):
		return cli.Usagef("--upgrade-to %q: readiness is known for %s", u.to, strings.Join(health.UpgradeSteps(), " and "))
	case watching:
		return cli.Usagef("--upgrade-to is not for --watch")
	}
	return nil
}

// judge adds to the report whether the cluster is ready.
func (u *upgradeFlags) judge(ctx context.Context, a *app.App, report *health.Report) error {
	var e health.UpgradeEvidence
	e.Skipped = "no snapshot was given, so the members in the database were not compared: take one with etcdkit snapshot save FILE, and give it with --snapshot FILE"
	if u.snapshot != "" {
		stored, err := storedMembers(ctx, a, u.snapshot)
		if err != nil {
			return err
		}
		e.Stored = stored
	}
	if u.repository != "" {
		e.Backup = u.newestBackup(ctx, a, report.Cluster.IDHex)
	}
	return health.JudgeUpgrade(report, u.to, e)
}

// storedMembers reads the members that a snapshot holds.
func storedMembers(ctx context.Context, a *app.App, path string) (stored *health.StoredMembers, err error) {
	const lockWait = 10 * time.Second
	f, err := snapshot.OpenFile(ctx, path, lockWait)
	if err != nil {
		return nil, cli.CannotTell(fmt.Errorf("--snapshot: %w", err))
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	update := progress.Func(progress.Discard)
	if !a.Global.Quiet {
		meter := progress.To(a.Err, a.Live, a.Now, "reading "+path)
		defer meter.Done()
		update = meter.Update
	}
	s, err := snapshot.Status(ctx, f, update)
	if err != nil {
		return nil, cli.CannotTell(fmt.Errorf("--snapshot: %w", err))
	}
	if s.Integrity == snapshot.Broken {
		return nil, cli.CannotTell(hint.With(fmt.Errorf("--snapshot %s: %s", path, s.Reason), "take another one with: etcdkit snapshot save FILE"))
	}
	stored = &health.StoredMembers{Source: path, Removed: s.State.RemovedMembers}
	for _, m := range s.State.Members {
		stored.Members = append(stored.Members, health.StoredMember{ID: m.ID, Name: m.Name, Learner: m.Learner})
	}
	return stored, nil
}

// newestBackup looks for the newest good backup of the cluster.
func (u *upgradeFlags) newestBackup(ctx context.Context, a *app.App, cluster string) *health.BackupAge {
	b := &health.BackupAge{Where: u.repository}
	repo, err := u.repo.existing(ctx, a, u.repository)
	if err != nil {
		b.Error = err.Error()
		return b
	}
	age, err := snapshot.Age(ctx, repo, cluster, 0, 0, a.Now())
	switch {
	case age == nil && err != nil && !errors.Is(err, snapshot.ErrTooOld):
		b.Error = err.Error()
	case age == nil || age.Newest == "":
	case age.AgeSeconds == nil:
		b.Error = strings.Join(append([]string{"backup " + age.Newest + " has no age"}, age.Notes...), "; ")
	default:
		b.Name, b.Age = age.Newest, time.Duration(*age.AgeSeconds*float64(time.Second))
	}
	return b
}
