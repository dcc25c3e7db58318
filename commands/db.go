package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/commands/utl"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/mvccdb"
	"github.com/etcdkit/etcdkit/internal/output"
	"github.com/etcdkit/etcdkit/internal/progress"
	"github.com/etcdkit/etcdkit/snapshot"
)

// newDBCmd returns the commands that look inside database files.
func newDBCmd(a *app.App) *cobra.Command {
	cmd := a.Group("db", "Look inside database files and data directories, read-only",
		newDBInfoCmd(a), newDBKeysCmd(a), newDBDuCmd(a), newDBCompareCmd(a))
	cmd.Long = `Looks inside snapshot files and the databases of data directories. Nothing is
ever changed, and a file that is damaged is named as such, with the place.`
	return cmd
}

// dbFile is what the commands that read one file share.
type dbFile struct {
	a    *app.App
	wait time.Duration
}

func (d *dbFile) bind(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&d.wait, "timeout", 10*time.Second, "time to wait for a file that a running etcd has locked, 0 to wait forever")
}

// with opens the file, gives fn a meter, and closes both.
func (d *dbFile) with(ctx context.Context, path string, fn func(f *snapshot.File, update progress.Func) error) (err error) {
	f, err := snapshot.OpenFile(ctx, path, d.wait)
	if err != nil {
		return utl.Judged(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	update, done := progress.Func(progress.Discard), func() {}
	if !d.a.Global.Quiet {
		m := progress.To(d.a.Err, d.a.Live, d.a.Now, "reading "+f.Path)
		update, done = m.Update, m.Done
	}
	err = fn(f, update)
	done()
	if errors.Is(err, syscall.EPIPE) {
		return &cli.ChildExit{Code: 128 + int(syscall.SIGPIPE)} // as if the signal had ended us: the reader has seen enough
	}
	return utl.Judged(err)
}

const dbInfoHelp = `Shows what a snapshot file or the database of a data directory holds: buckets,
pages, revisions, live keys, members, and what the etcd that wrote it was at.

Exit codes: 0 shown, and good; 2 wrong usage; 3 damaged or no database; 4 the
integrity is unknown, or the file not readable or locked.`

func newDBInfoCmd(a *app.App) *cobra.Command {
	d := &dbFile{a: a}
	cmd := &cobra.Command{
		Use: "info FILE|DIR", Short: "Show buckets, pages, revisions, keys and members", Long: dbInfoHelp,
		Example: "  etcdkit db info backup.db\n  etcdkit db info /var/lib/etcd -w json",
		Args:    cobra.ExactArgs(1),
		RunE: a.Run(func(ctx context.Context, args []string) error {
			var s *snapshot.FileStatus
			err := d.with(ctx, args[0], func(f *snapshot.File, update progress.Func) (err error) {
				s, err = snapshot.Status(ctx, f, update)
				return err
			})
			if err != nil {
				return err
			}
			v := dbInfoOf(s)
			return errors.Join(a.Print(output.Result{JSON: v, Simple: v.simple}), utl.Verdict(s))
		}),
	}
	d.bind(cmd)
	return cmd
}

// dbInfo is what db info shows.
type dbInfo struct {
	File             string         `json:"file"`
	FileSize         int64          `json:"fileSize"`
	Integrity        string         `json:"integrity"`
	Reason           string         `json:"reason"`
	PageSize         int            `json:"pageSize"`
	Pages            uint64         `json:"pages"`
	UnreachablePages uint64         `json:"unreachablePages"`
	TxID             uint64         `json:"txID"`
	Revision         int64          `json:"revision"`
	OldestRevision   int64          `json:"oldestRevision"`
	NewestRevision   int64          `json:"newestRevision"`
	CompactRevision  int64          `json:"compactRevision"`
	Keys             int            `json:"keys"`
	Revisions        int            `json:"revisions"`
	Tombstones       int            `json:"tombstones"`
	HashKV           uint32         `json:"hashKV"`
	StorageVersion   string         `json:"storageVersion"`
	ClusterVersion   string         `json:"clusterVersion"`
	Term             uint64         `json:"term"`
	ConsistentIndex  uint64         `json:"consistentIndex"`
	Leases           int            `json:"leases"`
	AuthEnabled      bool           `json:"authEnabled"`
	Users            []string       `json:"users"`
	Roles            []string       `json:"roles"`
	Members          []dbMember     `json:"members"`
	Alarms           []string       `json:"alarms"`
	Buckets          []dbBucketInfo `json:"buckets"`
	Damage           []string       `json:"damage"`
}

type dbMember struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	PeerURLs   []string `json:"peerURLs"`
	ClientURLs []string `json:"clientURLs"`
	Learner    bool     `json:"learner"`
}

type dbBucketInfo struct {
	Name    string `json:"name"`
	Records int    `json:"records"`
	Bytes   int64  `json:"bytes"`
	Pages   int    `json:"pages"`
}

func dbInfoOf(s *snapshot.FileStatus) dbInfo {
	st := s.State
	v := dbInfo{
		File: s.Path, FileSize: s.FileSize, Integrity: string(s.Integrity), Reason: s.Reason,
		PageSize: s.PageSize, Pages: s.Pages, UnreachablePages: s.FreePages, TxID: s.TxID,
		Revision: s.Report.Revision, OldestRevision: s.First.Main, NewestRevision: s.Last.Main, CompactRevision: st.CompactRevision(),
		Keys: s.LiveKeys, Revisions: s.Revisions, Tombstones: s.Tombstones, HashKV: s.HashKV.Hash,
		StorageVersion: st.StorageVersion, ClusterVersion: st.ClusterVersion, Term: st.Term, ConsistentIndex: st.ConsistentIndex,
		Leases: st.Leases, AuthEnabled: st.AuthEnabled, Users: append([]string{}, st.Users...), Roles: append([]string{}, st.Roles...),
		Members: []dbMember{}, Alarms: []string{}, Buckets: []dbBucketInfo{}, Damage: []string{},
	}
	for _, m := range st.Members {
		v.Members = append(v.Members, dbMember{output.ID(m.ID), m.Name, append([]string{}, m.PeerURLs...), append([]string{}, m.ClientURLs...), m.Learner})
	}
	for _, alarm := range st.Alarms {
		v.Alarms = append(v.Alarms, alarm.Type+" of "+output.ID(alarm.MemberID))
	}
	for _, b := range s.Buckets {
		v.Buckets = append(v.Buckets, dbBucketInfo{b.Name, b.Elements, b.Bytes, b.Pages})
	}
	for _, d := range s.Damage {
		v.Damage = append(v.Damage, d.Error())
	}
	return v
}

func (v dbInfo) simple(w io.Writer) {
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-10s "+format+"\n", append([]any{name}, args...)...)
	}
	row("file", "%s, %s", v.File, output.Bytes(v.FileSize))
	row("integrity", "%s: %s", v.Integrity, v.Reason)
	row("pages", "%d of %d bytes, %d of them unreachable", v.Pages, v.PageSize, v.UnreachablePages)
	row("revision", "%d; %d to %d are stored, compacted %s", v.Revision, v.OldestRevision, v.NewestRevision, compactedAt(v.CompactRevision))
	row("keys", "%d live, in %d revisions of which %d are deletions; hashkv %d", v.Keys, v.Revisions, v.Tombstones, v.HashKV)
	row("versions", "storage %s, cluster %s", dash(v.StorageVersion), dash(v.ClusterVersion))
	row("raft", "term %d, index %d", v.Term, v.ConsistentIndex)
	row("carries", "%d leases, %d users, %d roles, auth %s", v.Leases, len(v.Users), len(v.Roles), map[bool]string{true: "on", false: "off"}[v.AuthEnabled])
	for _, m := range v.Members {
		row("member", "%s %s %s", m.ID, m.Name, strings.Join(m.PeerURLs, ","))
	}
	for _, alarm := range v.Alarms {
		row("alarm", "%s", alarm)
	}
	for _, b := range v.Buckets {
		row("bucket", "%-16s %9d records %12d bytes %8d pages", b.Name, b.Records, b.Bytes, b.Pages)
	}
	for _, d := range v.Damage {
		row("damage", "%s", d)
	}
}

func compactedAt(rev int64) string {
	if rev == mvccdb.NeverCompacted {
		return "never"
	}
	return fmt.Sprintf("at %d", rev)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
