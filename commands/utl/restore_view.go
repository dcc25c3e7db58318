package utl

import (
	"fmt"
	"io"
	"os/user"
	"strings"

	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/output"
	"github.com/etcdkit/etcdkit/snapshot"
)

// restoredView is what a restore made, for programs.
type restoredView struct {
	Source         string   `json:"source"`
	DataDir        string   `json:"dataDir"`
	WALDir         string   `json:"walDir"`
	MovedAside     []string `json:"movedAside"`
	Name           string   `json:"name"`
	MemberID       string   `json:"memberID"`
	ClusterID      string   `json:"clusterID"`
	Token          string   `json:"token"`
	SourceRevision int64    `json:"sourceRevision"`
	Revision       int64    `json:"revision"`
	BumpedBy       uint64   `json:"bumpedBy"`
	MarkCompacted  bool     `json:"markCompacted"`
	Keys           int      `json:"keys"`
	Leases         int      `json:"leases"`
	AuthEnabled    bool     `json:"authEnabled"`
	Users          []string `json:"users"`
	Roles          []string `json:"roles"`
	Alarms         []string `json:"alarms"`
	OldMembers     []string `json:"oldMembers"`
	StorageVersion string   `json:"storageVersion"`
	SnapshotBytes  int64    `json:"snapshotBytes"`
	SnapshotSHA256 string   `json:"snapshotSHA256"`
	Kubernetes     string   `json:"kubernetesPrefix"`
	StaleKeys      []string `json:"staleKeys"`
	Unapplied      uint64   `json:"unappliedEntries"` // always 0: the log is applied
	Applied        uint64   `json:"appliedEntries"`
	BeyondCommit   uint64   `json:"entriesBeyondCommit"`
	Start          string   `json:"start"`
	Owner          string   `json:"owner"`   // UID:GID, "" where it is not known
	BootsIn        []string `json:"bootsIn"` // minor versions of etcd

	replayed *snapshot.Replayed
}

func restoredViewOf(r *snapshot.Restored) restoredView {
	s := r.Report.State
	v := restoredView{
		Source: r.Source, DataDir: r.DataDir, WALDir: r.WALDir, MovedAside: list(r.MovedTo), Name: r.Name,
		MemberID: output.ID(r.MemberID), ClusterID: output.ID(r.ClusterID), Token: r.Token,
		SourceRevision: r.SourceRevision, Revision: r.Revision, BumpedBy: r.BumpedBy, MarkCompacted: r.Compacted,
		Keys: r.Report.LiveKeys, Leases: s.Leases, AuthEnabled: s.AuthEnabled, Users: list(s.Users), Roles: list(s.Roles),
		Alarms: []string{}, OldMembers: []string{}, StorageVersion: s.StorageVersion,
		SnapshotBytes: r.FileSize, SnapshotSHA256: fmt.Sprintf("%x", r.FileSHA256), Kubernetes: r.Kubernetes, StaleKeys: list(r.StaleKeys),
	}
	for _, a := range s.Alarms {
		v.Alarms = append(v.Alarms, a.Type+" of "+output.ID(a.MemberID))
	}
	for _, m := range s.Members {
		v.OldMembers = append(v.OldMembers, m.Name+" "+output.ID(m.ID))
	}
	if r.Owner != nil {
		v.Owner = fmt.Sprintf("%d:%d", r.Owner.UID, r.Owner.GID)
	}
	v.BootsIn = list(snapshot.BootsIn(s))
	if v.replayed = r.Replayed; v.replayed != nil {
		v.Applied, v.BeyondCommit = r.Replayed.Entries, r.Replayed.BeyondCommit
	}
	return v
}

// list is never null in JSON.
func list(all []string) []string { return append([]string{}, all...) }

func (v restoredView) simple(w io.Writer) {
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-9s "+format+"\n", append([]any{name}, args...)...)
	}
	fmt.Fprintf(w, "restored %s to %s\n", v.Source, v.DataDir)
	row("member", "%s, id %s, cluster %s, token %s", v.Name, v.MemberID, v.ClusterID, v.Token)
	if v.BumpedBy > 0 {
		row("revision", "%d, moved on by %d from %d; everything before counts as compacted", v.Revision, v.BumpedBy, v.SourceRevision)
	} else {
		row("revision", "%d", v.Revision)
	}
	row("carried", "%d keys, %d leases, %d users, %d roles, auth %s, storage version %s",
		v.Keys, v.Leases, len(v.Users), len(v.Roles), map[bool]string{true: "on", false: "off"}[v.AuthEnabled], orNone(v.StorageVersion))
	if len(v.Alarms) > 0 {
		row("alarms", "%s: carried over, disarm them when the cause is gone", strings.Join(v.Alarms, ", "))
	}
	row("left", "%d old members: %s", len(v.OldMembers), strings.Join(v.OldMembers, ", "))
	if v.replayed != nil {
		row("log", "%s", logLine(*v.replayed))
	}
	if v.Owner != "" {
		row("owner", "%s", ownerName(v.Owner))
	}
	if len(v.MovedAside) > 0 {
		row("aside", "%s", strings.Join(v.MovedAside, ", "))
	}
	if len(v.StaleKeys) > 0 {
		row("stale", "%d keys of API servers are as they were: those that no longer run stay endpoints of the kubernetes service until they expire: %s",
			len(v.StaleKeys), strings.Join(v.StaleKeys, ", "))
	}
	if len(v.BootsIn) > 0 {
		row("boots", "in etcd %s; for an older one first: %s", strings.Join(v.BootsIn, " and "),
			cli.ShellLine("etcdkit", "migrate", "--data-dir", v.DataDir, "--target-version", "X.Y"))
	}
	row("next", "start etcd with %s", strings.TrimPrefix(v.Start, "etcd "))
}

// ownerName names the owner of files by name where the system knows it.
func ownerName(ids string) string {
	uid, gid, _ := strings.Cut(ids, ":")
	if u, err := user.LookupId(uid); err == nil {
		uid = u.Username
	}
	if g, err := user.LookupGroupId(gid); err == nil {
		gid = g.Name
	}
	return uid + ":" + gid
}

// ownerWarning warns of files that the user for whom they were restored cannot
// read, "" where there is nothing to warn of.
func ownerWarning(r *snapshot.Restored) string {
	if r.Owner == nil || r.Before == nil || r.Owner.UID == r.Before.UID {
		return ""
	}
	name := func(o *snapshot.Owner) string { return ownerName(fmt.Sprintf("%d:%d", o.UID, o.GID)) }
	paths := []string{r.DataDir}
	if !strings.HasPrefix(r.WALDir, r.DataDir) {
		paths = append(paths, r.WALDir)
	}
	return fmt.Sprintf("the restored files belong to %s, and what was there before to %s: an etcd that runs as that user cannot open them; run: %s (or restore with --owner)",
		name(r.Owner), name(r.Before), cli.ShellLine(append([]string{"chown", "-R", name(r.Before)}, paths...)...))
}

// logLine says what the write-ahead log added.
func logLine(r snapshot.Replayed) string {
	if r.Entries == 0 {
		return "the database held all of it"
	}
	line := fmt.Sprintf("entries %d to %d applied, which the database did not hold: %d, of which %d lay beyond the recorded commit",
		r.From, r.To, r.Entries, r.BeyondCommit)
	if r.Memberships > 0 {
		line += "; changes of the old membership are dropped"
	}
	return line
}
