package utl

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/mvccdb"
	"github.com/etcdkit/etcdkit/internal/output"
)

const hashKVHelp = `Computes the hash of the keys' history in a file, the same as "endpoint hashkv"
gives for a member. It depends on the revision and on the compact revision: only
hashes where both are equal can be compared. The file is never changed.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 damaged or no database, 4 the file
is not readable, or locked by a running etcd for longer than --timeout.`

func newHashKVCmd(t *tree) *cobra.Command {
	var rev int64
	cmd := &cobra.Command{
		Use: "hashkv <filename>", Short: "Prints the KV history hash of a given file", Args: cobra.ExactArgs(1),
		RunE: t.run(func(ctx context.Context, args []string) error { return runHashKV(ctx, t, args[0], rev) }),
	}
	cmd.Flags().Int64Var(&rev, "rev", 0, "maximum revision to hash (default: latest revision)")
	return t.native(cmd, hashKVHelp, "  etcdkit hashkv backup.db\n  etcdkit hashkv backup.db --rev 1000 -w json", cobra.ExactArgs(1), output.Fields)
}

func runHashKV(ctx context.Context, t *tree, path string, rev int64) (err error) {
	if rev < 0 && !t.upstream() {
		return cli.Usagef("--rev %d: a revision cannot be negative", rev)
	}
	if err := t.checkFormat(); err != nil {
		return err
	}
	if err := t.exists(path); err != nil {
		return err
	}
	if t.upstream() && isEmpty(path) {
		return t.printEmptyHash(rev)
	}
	f, err := t.open(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	update, done := t.meter("reading " + f.Path)
	opts := mvccdb.Options{Progress: update}
	if t.upstream() {
		opts.Damage = beyondMeta
	}
	h, err := f.HashKV(ctx, rev, opts)
	done()
	switch {
	case errors.Is(err, mvccdb.ErrCompacted), errors.Is(err, mvccdb.ErrFutureRevision):
		return t.revisionError(err)
	case err != nil:
		return t.judged(fmt.Errorf("%s: %w", f.Path, err))
	}
	return t.print(hashKV{Hash: h.Hash, HashRevision: h.Revision, CompactRevision: h.CompactRevision}.result())
}

// isEmpty reports whether path is a regular file without a byte in it.
func isEmpty(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() == 0
}

// printEmptyHash answers for an empty file as upstream does, which makes a
// database without a key of it first. The file stays as it is.
func (t *tree) printEmptyHash(rev int64) error {
	const current, notCompacted = 1, -1
	if rev > current {
		return t.revisionError(mvccdb.ErrFutureRevision)
	}
	if rev == 0 {
		rev = current
	}
	sum := crc32.Checksum([]byte(mvccdb.KeyBucket), crc32.MakeTable(crc32.Castagnoli))
	return t.print(hashKV{Hash: sum, HashRevision: rev, CompactRevision: notCompacted}.result())
}

// revisionError says that the file cannot answer for a revision.
func (t *tree) revisionError(err error) error {
	if !t.upstream() {
		return cli.Usage(err)
	}
	if errors.Is(err, mvccdb.ErrCompacted) {
		return fmt.Errorf("mvcc: %w", mvccdb.ErrCompacted)
	}
	return fmt.Errorf("mvcc: %w", mvccdb.ErrFutureRevision)
}

// hashKV is a hash as upstream encodes it.
type hashKV struct {
	Hash            uint32 `json:"hash"`
	HashRevision    int64  `json:"hashRevision"`
	CompactRevision int64  `json:"compactRevision"`
}

func (h hashKV) result() output.Result {
	row := []string{strconv.FormatUint(uint64(h.Hash), 10), strconv.FormatInt(h.HashRevision, 10), strconv.FormatInt(h.CompactRevision, 10)}
	return output.Result{
		JSON:   h,
		Simple: func(w io.Writer) { fmt.Fprintln(w, strings.Join(row, ", ")) },
		Fields: func(w io.Writer) {
			fmt.Fprintln(w, `"Hash" :`, h.Hash)
			fmt.Fprintln(w, `"Hash revision" :`, h.HashRevision)
			fmt.Fprintln(w, `"Compact revision" :`, h.CompactRevision)
		},
		Table: func() ([]string, [][]string) {
			return []string{"hash", "hash revision", "compact revision"}, [][]string{row}
		},
	}
}
