package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/output"
	"github.com/etcdkit/etcdkit/snapshot"
)

const dbCompareHelp = `Compares the data directories of the members of one cluster that has lost its
quorum, and says which one to recover from: the one that is not damaged and whose
write-ahead log ends last, by raft's order of term and index. Restoring from it
applies that log to its end.

Exit codes: 0 one can be used, 2 wrong usage, 3 every one is damaged, 4 one cannot
be read or is locked by a running etcd, or they are of different clusters.`

func newDBCompareCmd(a *app.App) *cobra.Command {
	d := &dbFile{a: a}
	var walDirs []string
	cmd := &cobra.Command{
		Use: "compare DIR...", Short: "Find the best of several data directories to recover from", Long: dbCompareHelp,
		Example: "  etcdkit db compare /mnt/m1/etcd /mnt/m2/etcd /mnt/m3/etcd",
		Args:    cobra.MinimumNArgs(1),
		RunE: a.Run(func(ctx context.Context, args []string) error {
			places, err := placesOf(args, walDirs)
			if err != nil {
				return cli.Usage(err)
			}
			return runDBCompare(ctx, a, places, d.wait)
		}),
	}
	d.bind(cmd)
	cmd.Flags().StringArrayVar(&walDirs, "wal-dir", nil,
		`WAL directory of a DIR, repeated in the order of the DIRs; "" for one that has its log inside`)
	app.Must(cmd.MarkFlagDirname("wal-dir"))
	return cmd
}

// placesOf pairs data directories with their WAL directories.
func placesOf(dirs, walDirs []string) ([]snapshot.Place, error) {
	if len(walDirs) > 0 && len(walDirs) != len(dirs) {
		return nil, fmt.Errorf("--wal-dir is given %d times for %d data directories: repeat it once for each, in their order", len(walDirs), len(dirs))
	}
	places := make([]snapshot.Place, len(dirs))
	for i, dir := range dirs {
		places[i].DataDir = dir
		if len(walDirs) > 0 {
			places[i].WALDir = walDirs[i]
		}
	}
	return places, nil
}

func runDBCompare(ctx context.Context, a *app.App, places []snapshot.Place, wait time.Duration) error {
	all, best, err := snapshot.Compare(ctx, places, wait)
	mixed := errors.Is(err, snapshot.ErrClusters)
	if err != nil && !mixed {
		return err
	}
	v := comparisonOf(all, best)
	if err := a.Print(output.Result{JSON: v, Simple: v.simple, Table: v.table}); err != nil {
		return err
	}
	unread := 0
	for _, c := range all {
		if c.Report == nil {
			unread++
		}
	}
	switch {
	case mixed:
		return cli.CannotTell(err)
	case best < 0 && unread < len(all):
		return cli.Verdict(errors.New("no data directory can be recovered from"))
	case unread > 0:
		return cli.CannotTell(fmt.Errorf("%d of %d data directories could not be read", unread, len(all)))
	}
	return nil
}

// comparison is what db compare shows.
type comparison struct {
	Best        string          `json:"best"`    // "" where none can be used
	Restore     string          `json:"restore"` // how to recover from the best one, "" without one
	Directories []candidateView `json:"directories"`
}

type candidateView struct {
	DataDir       string `json:"dataDir"`
	WALDir        string `json:"walDir"` // "" where the log is inside
	Usable        bool   `json:"usable"`
	Problem       string `json:"problem"`
	Member        string `json:"member"`
	ClusterID     string `json:"clusterID"`
	Term          uint64 `json:"term"`
	AppliedIndex  uint64 `json:"appliedIndex"`
	CommitIndex   uint64 `json:"commitIndex"`
	LastTerm      uint64 `json:"lastTerm"`
	LastIndex     uint64 `json:"lastIndex"`
	Revision      int64  `json:"revision"`
	Keys          int    `json:"keys"`
	HashKV        uint32 `json:"hashKV"`
	LogProblem    string `json:"logProblem"`
	UnappliedWALs uint64 `json:"unappliedEntries"`
	BeyondCommit  uint64 `json:"entriesBeyondCommit"`
}

func comparisonOf(all []*snapshot.Candidate, best int) comparison {
	v := comparison{Directories: []candidateView{}}
	if best >= 0 {
		v.Best = all[best].DataDir
		args := []string{"etcdkit", "snapshot", "restore", v.Best}
		if wal := all[best].WALDir; wal != "" {
			args = append(args, "--source-wal-dir", wal)
		}
		v.Restore = cli.ShellLine(append(args, "--data-dir", "NEW")...)
	}
	for _, c := range all {
		d := candidateView{DataDir: c.DataDir, WALDir: c.WALDir, Usable: c.Usable(), Problem: c.Problem, LogProblem: c.LogError}
		d.LastTerm, d.LastIndex = c.LastEntry()
		if r := c.Report; r != nil {
			d.Term, d.AppliedIndex, d.Revision, d.Keys, d.HashKV = r.State.Term, r.State.ConsistentIndex, r.Revision, r.LiveKeys, r.HashKV.Hash
		}
		if l := c.Log; l != nil {
			d.Member, d.ClusterID = output.ID(l.MemberID), output.ID(l.ClusterID)
			d.Term, d.CommitIndex, d.UnappliedWALs = l.Term, l.Commit, l.Unapplied()
			d.BeyondCommit = l.BeyondCommit()
		}
		v.Directories = append(v.Directories, d)
	}
	return v
}

func (v comparison) table() (header []string, rows [][]string) {
	header = []string{"data dir", "member", "term", "commit", "applied", "last index", "revision", "keys", "state"}
	for _, d := range v.Directories {
		state := d.Problem
		switch {
		case d.DataDir == v.Best:
			state = "best"
		case d.Usable:
			state = "good"
		}
		if d.LogProblem != "" && d.LogProblem != d.Problem {
			state += "; log: " + d.LogProblem
		}
		rows = append(rows, []string{
			d.DataDir, d.Member, number(d.Term), number(d.CommitIndex), number(d.AppliedIndex), number(d.LastIndex),
			strconv.FormatInt(d.Revision, 10), strconv.Itoa(d.Keys), state,
		})
	}
	return header, rows
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

func (v comparison) simple(w io.Writer) {
	header, rows := v.table()
	output.Columns(w, header, rows)
	if v.Best == "" {
		fmt.Fprintln(w, "none of them can be recovered from")
		return
	}
	fmt.Fprintf(w, "recover from %s: %s\n", v.Best, v.Restore)
}
