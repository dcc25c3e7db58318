package utl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/mvccdb"
	"github.com/etcdkit/etcdkit/internal/output"
	"github.com/etcdkit/etcdkit/snapshot"
)

const statusUpstreamHelp = `When --write-out is set to simple, this command prints out comma-separated status lists for each endpoint.
The items in the lists are hash, revision, total keys, total size.
`

const statusHelp = `Reads a snapshot file, or the database of a data directory, once and judges it:
every page, every revision, and the SHA-256 at its end or in the manifest beside
it. The file is never changed. Where there is neither SHA-256 nor manifest, as
in a data directory, the integrity is unknown.

Exit codes: 0 good, 2 wrong usage, 3 damaged or no database, 4 integrity unknown,
file not readable or locked by a running etcd for longer than --timeout.`

func newStatusCmd(t *tree) *cobra.Command {
	cmd := &cobra.Command{
		Use: "status <filename>", Short: "Gets backend snapshot status of a given file", Long: statusUpstreamHelp,
		RunE: t.run(func(ctx context.Context, args []string) error { return runStatus(ctx, t, args) }),
	}
	return t.native(cmd, statusHelp, "  etcdkit snapshot status backup.db\n  etcdkit snapshot status /var/lib/etcd -w json",
		cobra.ExactArgs(1), output.Fields)
}

func runStatus(ctx context.Context, t *tree, args []string) (err error) {
	if len(args) != 1 {
		return badArgs("snapshot status requires exactly one argument")
	}
	if err := t.exists(args[0]); err != nil {
		return err
	}
	if err := t.checkFormat(); err != nil {
		return err
	}
	f, err := t.open(ctx, args[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if t.upstream() {
		return upstreamStatus(ctx, t, f)
	}
	update, done := t.meter("reading " + f.Path)
	s, err := snapshot.Status(ctx, f, update)
	done()
	if err != nil {
		return t.judged(err)
	}
	return errors.Join(t.print(nativeStatus(s)), Verdict(s))
}

// upstreamStatus judges as little as upstream does: nothing about the SHA-256,
// nor about a broken meta page beside a good one.
func upstreamStatus(ctx context.Context, t *tree, f *snapshot.File) error {
	r, err := f.Check(ctx, mvccdb.CheckOptions{SkipTrailer: true})
	if err != nil {
		return err
	}
	for _, d := range r.Damage {
		if err := beyondMeta(d); err != nil {
			return fmt.Errorf("snapshot file integrity check failed. %d errors found.\n%w", r.DamageCount, err)
		}
	}
	return t.print(dbStatus(r).result())
}

// beyondMeta passes over a broken meta page beside a good one, as upstream does.
func beyondMeta(d *mvccdb.Damage) error {
	if d.Page <= 1 {
		return nil
	}
	return d
}

// upstreamState is a status as upstream encodes it.
type upstreamState struct {
	Hash      uint32 `json:"hash"`
	Revision  int64  `json:"revision"`
	TotalKey  int    `json:"totalKey"`
	TotalSize int64  `json:"totalSize"`
	Version   string `json:"version"`
}

func dbStatus(r *mvccdb.Report) upstreamState {
	return upstreamState{Hash: r.Hash, Revision: r.Last.Main, TotalKey: r.LiveRecords, TotalSize: r.Size, Version: r.State.StorageVersion}
}

func (s upstreamState) result() output.Result {
	row := []string{
		strconv.FormatUint(uint64(s.Hash), 16), strconv.FormatInt(s.Revision, 10), strconv.Itoa(s.TotalKey),
		humanize.Bytes(uint64(s.TotalSize)), s.Version,
	}
	return output.Result{
		JSON:   s,
		Simple: func(w io.Writer) { fmt.Fprintln(w, strings.Join(row, ", ")) },
		Fields: s.fields,
		Table: func() ([]string, [][]string) {
			return []string{"hash", "revision", "total keys", "total size", "version"}, [][]string{row}
		},
	}
}

func (s upstreamState) fields(w io.Writer) {
	fmt.Fprintln(w, `"Hash" :`, s.Hash)
	fmt.Fprintln(w, `"Revision" :`, s.Revision)
	fmt.Fprintln(w, `"Keys" :`, s.TotalKey)
	fmt.Fprintln(w, `"Size" :`, s.TotalSize)
	fmt.Fprintln(w, `"Version" :`, s.Version)
}

// nativeState is a status as etcdkit encodes it: upstream's fields, and more.
type nativeState struct {
	upstreamState
	File            string   `json:"file"`
	FileSize        int64    `json:"fileSize"`
	Integrity       string   `json:"integrity"`
	Reason          string   `json:"reason"`
	SHA256          string   `json:"sha256"`
	CurrentRevision int64    `json:"currentRevision"`
	CompactRevision int64    `json:"compactRevision"`
	Keys            int      `json:"keys"`
	Revisions       int      `json:"revisions"`
	Tombstones      int      `json:"tombstones"`
	InternalRecords int      `json:"internalRecords"`
	HashKV          uint32   `json:"hashKV"`
	FreePages       uint64   `json:"freePages"`
	PageSize        int      `json:"pageSize"`
	DamageCount     int      `json:"damageCount"`
	Damage          []string `json:"damage"`
	Limits          string   `json:"limits"`
}

// limits says openly what no check of a file can find.
const limits = "a change inside a value, or in an unused page, is found by the SHA-256 alone"

func nativeStatus(s *snapshot.FileStatus) output.Result {
	n := nativeState{
		upstreamState: dbStatus(s.Report), File: s.Path, FileSize: s.FileSize,
		Integrity: string(s.Integrity), Reason: s.Reason, SHA256: fmt.Sprintf("%x", s.SHA256),
		CurrentRevision: s.Report.Revision, CompactRevision: s.State.CompactRevision(),
		Keys: s.LiveKeys, Revisions: s.Revisions, Tombstones: s.Tombstones, InternalRecords: internalRecords(s.Report),
		HashKV: s.HashKV.Hash, FreePages: s.FreePages, PageSize: s.PageSize, DamageCount: s.DamageCount, Damage: []string{}, Limits: limits,
	}
	for _, d := range s.Damage {
		n.Damage = append(n.Damage, d.Error())
	}
	form := n.result()
	form.JSON, form.Simple = n, n.simple
	return form
}

// internalRecords counts what etcd keeps beside the revisions: members, leases,
// users and the like.
func internalRecords(r *mvccdb.Report) int {
	count := 0
	for _, b := range r.Buckets {
		if b.Name != mvccdb.KeyBucket {
			count += b.Elements
		}
	}
	return count
}

func (n nativeState) simple(w io.Writer) {
	rows := [][2]string{
		{"file", fmt.Sprintf("%s, %s", n.File, output.Bytes(n.FileSize))},
		{"integrity", n.Integrity + ": " + n.Reason},
		{"revision", fmt.Sprintf("%d, compacted %s", n.CurrentRevision, compacted(n.CompactRevision))},
		{"keys", fmt.Sprintf("%d live, in %d revisions of which %d are deletions; %d internal records", n.Keys, n.Revisions, n.Tombstones, n.InternalRecords)},
		{"hashkv", strconv.FormatUint(uint64(n.HashKV), 10)},
		{"hash", strconv.FormatUint(uint64(n.Hash), 16)},
		{"version", orNone(n.Version)},
		{"free", fmt.Sprintf("%d pages of %d bytes", n.FreePages, n.PageSize)},
	}
	for _, r := range rows {
		fmt.Fprintf(w, "%-10s %s\n", r[0], r[1])
	}
	for _, d := range n.Damage {
		fmt.Fprintf(w, "%-10s %s\n", "damage", d)
	}
	if n.Integrity != string(snapshot.Proven) {
		fmt.Fprintf(w, "%-10s %s\n", "note", limits)
	}
}

func compacted(rev int64) string {
	if rev == mvccdb.NeverCompacted {
		return "never"
	}
	return "at " + strconv.FormatInt(rev, 10)
}

func orNone(s string) string {
	if s == "" {
		return "none (etcd 3.5 or older)"
	}
	return s
}

// Verdict is the judgement on a file as an error.
func Verdict(s *snapshot.FileStatus) error {
	switch s.Integrity {
	case snapshot.Broken:
		return cli.Verdict(hint.With(fmt.Errorf("%s: %s", s.Path, s.Reason), "do not restore it; use another backup or member"))
	case snapshot.Unknown:
		return cli.CannotTell(fmt.Errorf("%s: integrity unknown: %s", s.Path, s.Reason))
	}
	return nil
}
