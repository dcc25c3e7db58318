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
quorum, and says which one to recover from: the one that is not damaged and holds
the newest entry, by raft's order of term and index, applied or in the log.

Exit codes: 0 one can be used, 2 wrong usage, 3 every one is damaged, 4 one cannot
be read or is locked by a running etcd.`

func newDBCompareCmd(a *app.App) *cobra.Command {
	d := &dbFile{a: a}
	cmd := &cobra.Command{
		Use: "compare DIR...", Short: "Find the best of several data directories to recover from", Long: dbCompareHelp,
		Example: "  etcdkit db compare /mnt/m1/etcd /mnt/m2/etcd /mnt/m3/etcd",
		Args:    cobra.MinimumNArgs(1),
		RunE:    a.Run(func(ctx context.Context, args []string) error { return runDBCompare(ctx, a, args, d.wait) }),
	}
	d.bind(cmd)
	return cmd
}

func runDBCompare(ctx context.Context, a *app.App, dirs []string, wait time.Duration) error {
	all, best, err := snapshot.Compare(ctx, dirs, wait)
	if err != nil {
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
	case best < 0 && unread < len(all):
		return cli.Verdict(errors.New("no data directory can be recovered from"))
	case unread > 0:
		return cli.CannotTell(fmt.Errorf("%d of %d data directories could not be read", unread, len(all)))
	}
	return nil
}

// comparison is what db compare shows.
type comparison struct {
	Best        string          `json:"best"` // "" where none can be used
	Directories []candidateView `json:"directories"`
}

type candidateView struct {
	DataDir       string `json:"dataDir"`
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
}

func comparisonOf(all []*snapshot.Candidate, best int) comparison {
	v := comparison{Directories: []candidateView{}}
	if best >= 0 {
		v.Best = all[best].DataDir
	}
	for _, c := range all {
		d := candidateView{DataDir: c.DataDir, Usable: c.Usable(), Problem: c.Problem, LogProblem: c.LogError}
		d.LastTerm, d.LastIndex = c.LastEntry()
		if r := c.Report; r != nil {
			d.Term, d.AppliedIndex, d.Revision, d.Keys, d.HashKV = r.State.Term, r.State.ConsistentIndex, r.Revision, r.LiveKeys, r.HashKV.Hash
		}
		if l := c.Log; l != nil {
			d.Member, d.ClusterID = output.ID(l.MemberID), output.ID(l.ClusterID)
			d.Term, d.CommitIndex, d.UnappliedWALs = l.Term, l.Commit, l.Unapplied()
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
		if d.LogProblem != "" {
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
	fmt.Fprintf(w, "recover from %s: etcdkit snapshot restore %s --data-dir NEW\n", v.Best, v.Best)
}
