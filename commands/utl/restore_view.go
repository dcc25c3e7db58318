package utl

import (
	"fmt"
	"io"
	"strings"

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
	Unapplied      uint64   `json:"unappliedEntries"`
}

func restoredViewOf(r *snapshot.Restored, log *snapshot.LogState) restoredView {
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
	if log != nil {
		v.Unapplied = log.Unapplied()
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
	if v.Unapplied > 0 {
		row("lost", "%d entries of the write-ahead log, which the database does not hold", v.Unapplied)
	}
	if len(v.MovedAside) > 0 {
		row("aside", "%s", strings.Join(v.MovedAside, ", "))
	}
	if len(v.StaleKeys) > 0 {
		row("stale", "%d keys of API servers are as they were: those that no longer run stay endpoints of the kubernetes service until they expire: %s",
			len(v.StaleKeys), strings.Join(v.StaleKeys, ", "))
	}
	row("next", "start etcd with --name %s --data-dir %s and the peer URLs given here", v.Name, v.DataDir)
}
