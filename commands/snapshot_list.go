package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/output"
	"github.com/etcdkit/etcdkit/snapshot"
)

func newSnapshotListCmd(a *app.App) *cobra.Command {
	var f repoFlags
	var cluster string
	cmd := &cobra.Command{
		Use:   "list REPO",
		Short: "List the backups of a folder or bucket",
		Long: `Lists the backups of REPO, a folder, s3://BUCKET/PREFIX/ or @NAME, oldest first,
with what is known of each: good, without quorum, or broken, and its newest
verification.

Exit codes: 0; 1 REPO, or a backup of it, cannot be read; 2 wrong usage or configuration.`,
		Example: "  etcdkit snapshot list s3://backups/prod/\n  etcdkit snapshot list @main -w json | jq -r '.backups[-1].name'",
		Args:    cobra.ExactArgs(1),
		RunE: a.Run(func(ctx context.Context, args []string) error {
			repo, err := f.existing(ctx, a, args[0])
			if err != nil {
				return err
			}
			all, err := snapshot.List(ctx, repo, cluster)
			if err != nil {
				return storeKind(err)
			}
			return errors.Join(a.Print(listResult(all)), unreadBackups(all))
		}),
	}
	f.bindS3(cmd, "")
	f.bindTrust()
	cmd.ValidArgsFunction = f.complete(a)
	bindCluster(cmd.Flags(), &cluster, "only backups of this cluster")
	return cmd
}

// unreadBackups fails where a list is not the whole truth.
func unreadBackups(all []*snapshot.Backup) error {
	unread, first := 0, ""
	for _, b := range all {
		if why := b.Unread(); why != "" {
			unread++
			first = cmp.Or(first, b.Name+": "+why)
		}
	}
	if unread == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d backups could not be read, the first: %s", unread, len(all), first)
}

// listedBackup is a backup with its judgement.
type listedBackup struct {
	*snapshot.Backup
	Good bool `json:"good"`
}

func listResult(all []*snapshot.Backup) output.Result {
	list := make([]listedBackup, len(all))
	for i, b := range all {
		list[i] = listedBackup{b, b.Good()}
	}
	return output.Result{
		JSON: struct {
			Backups []listedBackup `json:"backups"`
		}{list},
		Simple: func(w io.Writer) {
			if len(all) == 0 {
				fmt.Fprintln(w, "no backups")
				return
			}
			header, rows := listTable(all)
			output.Columns(w, header, rows)
		},
		Table: func() ([]string, [][]string) { return listTable(all) },
	}
}

func listTable(all []*snapshot.Backup) ([]string, [][]string) {
	rows := make([][]string, len(all))
	for i, b := range all {
		rows[i] = []string{b.Name, b.ClusterID, output.Time(b.CreatedAt), revisions(&b.Manifest), output.Bytes(b.SnapshotBytes), output.Bytes(b.StoredBytes), state(b), verified(b)}
	}
	return []string{"name", "cluster", "created", "revision", "size", "stored", "state", "verified"}, rows
}

// revisions is the revision, or the two that it is between.
func revisions(m *snapshot.Manifest) string {
	switch {
	case m.Revision > 0:
		return fmt.Sprint(m.Revision)
	case m.RevisionBefore == m.RevisionAfter:
		return fmt.Sprint(m.RevisionBefore)
	}
	return fmt.Sprintf("%d-%d", m.RevisionBefore, m.RevisionAfter)
}

func revisionOf(m *snapshot.Manifest) string {
	s := "revision " + revisions(m)
	if m.Keys != nil {
		s += fmt.Sprintf(", %d keys", *m.Keys)
	}
	return s
}

func state(b *snapshot.Backup) string {
	switch {
	case b.Problem != "":
		return b.Problem
	case !b.Quorum:
		return "without quorum"
	case !b.Good():
		return "damaged"
	}
	return "good"
}

func verified(b *snapshot.Backup) string {
	if b.Verified == nil {
		return "never"
	}
	return fmt.Sprintf("%s %s, %s", b.Verified.Level, b.Verified.Result, output.Time(b.Verified.At))
}

// manifestTable shows a manifest line by line.
func manifestTable(m *snapshot.Manifest) ([]string, [][]string) {
	rows := [][]string{
		{"name", m.Name},
		{"created", output.Time(m.CreatedAt)},
		{"cluster", m.ClusterID},
		{"lineage", m.Lineage},
		{"member", strings.TrimSpace(m.MemberName + " " + m.MemberID)},
		{"endpoint", m.Endpoint},
		{"quorum", fmt.Sprint(m.Quorum)},
		{"etcd version", m.EtcdVersion},
		{"storage version", m.StorageVersion},
		{"revision", revisions(m)},
		{"snapshot", fmt.Sprintf("%s, SHA-256 %s", output.Bytes(m.SnapshotBytes), m.SnapshotSHA256)},
		{"stored", fmt.Sprintf("%s, SHA-256 %s", output.Bytes(m.StoredBytes), m.StoredSHA256)},
	}
	if m.Keys != nil {
		rows = append(rows, []string{"keys", fmt.Sprint(*m.Keys)})
	}
	if m.HashKV != nil {
		rows = append(rows, []string{"hash", fmt.Sprintf("%d at revision %d", *m.HashKV, m.HashRevision)})
	}
	if m.Compression != "" {
		rows = append(rows, []string{"compression", m.Compression})
	}
	for _, r := range m.Recipients {
		rows = append(rows, []string{"recipient", r})
	}
	for _, key := range slices.Sorted(maps.Keys(m.Labels)) {
		rows = append(rows, []string{"label", key + "=" + m.Labels[key]})
	}
	writer := strings.TrimSpace(m.Writer.Host + " " + m.ToolVersion)
	rows = append(rows, []string{"written by", writer}, []string{"took", output.Duration(time.Duration(m.TookSeconds * float64(time.Second)))})
	return []string{"field", "value"}, rows
}
