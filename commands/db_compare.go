package commands

import (
	"fmt"
	"io"
	"strconv"

	"github.com/etcdkit/etcdkit/internal/output"
	"github.com/etcdkit/etcdkit/snapshot"
)

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
