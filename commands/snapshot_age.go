package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/metricsfile"
	"github.com/etcdkit/etcdkit/internal/output"
	"github.com/etcdkit/etcdkit/snapshot"
)

func newSnapshotAgeCmd(a *app.App) *cobra.Command {
	var f repoFlags
	var limit, verifiedLimit longDuration
	var cluster, metricsFile string
	cmd := &cobra.Command{
		Use:   "age REPO",
		Short: "Judge whether the newest backup, and the newest verified one, is young enough",
		Long: `Tells how old the newest good backup of REPO is, and the newest whose content was
verified. A run of save --skip-unchanged that found nothing changed counts as a
backup of its time. A backup stamped in the future has no age: it is warned of,
and does not count.

Exit codes: 0 young enough; 2 wrong usage or configuration; 3 too old, or there
is none; 4 REPO could not be read, or only a backup stamped in the future, or one
that could not be read, might be young enough.`,
		Example: "  etcdkit snapshot age s3://backups/prod/ --max 26h --verified-max 8d",
		Args:    cobra.ExactArgs(1),
		RunE: a.Run(func(ctx context.Context, args []string) error {
			unknown := func(err error) error {
				if metricsFile != "" { // what cannot be looked at is not fresh, whatever the file said
					err = errors.Join(err, metricsfile.Write(metricsFile, ageMetrics(&snapshot.Freshness{})))
				}
				return unreachable(err)
			}
			repo, err := f.existing(ctx, a, args[0])
			if err != nil {
				return unknown(err)
			}
			age, err := snapshot.Age(ctx, repo, cluster, time.Duration(limit), time.Duration(verifiedLimit), a.Now())
			if age == nil {
				return unknown(err)
			}
			err = judgeAge(err)
			for _, note := range age.Notes {
				a.Warn("%s", note)
			}
			if metricsFile != "" {
				err = errors.Join(err, metricsfile.Write(metricsFile, ageMetrics(age)))
			}
			return errors.Join(a.Print(ageResult(age)), err)
		}),
	}
	f.bindS3(cmd, "")
	f.bindTrust()
	cmd.ValidArgsFunction = f.complete(a)
	fs := cmd.Flags()
	limit = longDuration(26 * time.Hour)
	fs.Var(&limit, "max", "how old the newest good backup may be, such as 26h or 2d; 0 for any age")
	fs.Var(&verifiedLimit, "verified-max", "how old the newest verified backup may be")
	bindCluster(fs, &cluster, "look only at backups of this cluster")
	fs.StringVar(&metricsFile, "metrics-file", "", "write the ages for Prometheus' textfile collector")
	return cmd
}

// judgeAge turns the verdict on an age into an exit code.
func judgeAge(err error) error {
	switch {
	case errors.Is(err, snapshot.ErrTooOld):
		return cli.Verdict(err)
	case errors.Is(err, snapshot.ErrClock):
		return cli.CannotTell(hint.With(err, "set the clocks by NTP, then take a new backup"))
	case errors.Is(err, snapshot.ErrUnread):
		return cli.CannotTell(hint.With(err, "look at the folder or bucket itself, then run this again"))
	}
	return err
}

func ageMetrics(f *snapshot.Freshness) []metricsfile.Gauge {
	ok := 0.0
	if f.OK {
		ok = 1
	}
	gauges := []metricsfile.Gauge{metricsfile.One("etcdkit_backup_fresh", "Whether the newest backups are as young as they must be.", ok)}
	if f.AgeSeconds != nil {
		gauges = append(gauges, metricsfile.One("etcdkit_backup_age_seconds", "Age of the newest good backup.", *f.AgeSeconds))
	}
	if f.VerifiedAgeSeconds != nil {
		gauges = append(gauges, metricsfile.One("etcdkit_backup_verified_age_seconds", "Age of the newest verified backup.", *f.VerifiedAgeSeconds))
	}
	return gauges
}

func ageResult(f *snapshot.Freshness) output.Result {
	rows := func() [][]string {
		line := func(what, name string, at time.Time, age *float64) []string {
			switch {
			case name == "":
				return []string{what, "none", "", ""}
			case age == nil:
				return []string{what, name, output.Time(at), "unknown"}
			}
			return []string{what, name, output.Time(at), time.Duration(*age * float64(time.Second)).Round(time.Second).String()}
		}
		return [][]string{line("newest", f.Newest, f.NewestAt, f.AgeSeconds), line("verified", f.Verified, f.VerifiedAt, f.VerifiedAgeSeconds)}
	}
	return output.Result{
		JSON: f,
		Simple: func(w io.Writer) {
			for _, row := range rows() {
				if row[3] == "" {
					fmt.Fprintf(w, "%s backup: none\n", row[0])
					continue
				}
				if row[3] == "unknown" {
					fmt.Fprintf(w, "%s backup: of unknown age, %s (%s)\n", row[0], row[1], row[2])
					continue
				}
				fmt.Fprintf(w, "%s backup: %s old, %s (%s)\n", row[0], row[3], row[1], row[2])
			}
		},
		Table: func() ([]string, [][]string) { return []string{"which", "name", "of", "age"}, rows() },
	}
}
