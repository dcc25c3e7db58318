package commands

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/mvccdb"
	"github.com/etcdkit/etcdkit/internal/output"
	"github.com/etcdkit/etcdkit/internal/progress"
	"github.com/etcdkit/etcdkit/snapshot"
)

const dbKeysHelp = `Lists the keys that are live in a snapshot file or the database of a data
directory, in the order of their last changes, streaming. Values are not shown,
only their sizes.

Exit codes: 0 listed, 2 wrong usage or a revision that is not in the file, 3
damaged or no database, 4 the file is not readable or locked.`

type dbKeysOptions struct {
	prefix string
	rev    int64
}

func newDBKeysCmd(a *app.App) *cobra.Command {
	d := &dbFile{a: a}
	var o dbKeysOptions
	cmd := &cobra.Command{
		Use: "keys FILE|DIR", Short: "List the live keys", Long: dbKeysHelp,
		Example: "  etcdkit db keys backup.db --prefix /registry/secrets/\n  etcdkit db keys backup.db --rev 1000 -w json",
		Args:    cobra.ExactArgs(1),
		RunE: a.Run(func(ctx context.Context, args []string) error {
			if o.rev < 0 {
				return cli.Usagef("--rev %d: a revision cannot be negative", o.rev)
			}
			err := d.with(ctx, args[0], func(f *snapshot.File, update progress.Func) error {
				return printFileKeys(ctx, a, f, snapshot.KeysOptions{Prefix: []byte(o.prefix), Revision: o.rev, Progress: update})
			})
			if errors.Is(err, mvccdb.ErrCompacted) || errors.Is(err, mvccdb.ErrFutureRevision) {
				return cli.Usage(err)
			}
			return err
		}),
	}
	d.bind(cmd)
	cmd.Flags().StringVar(&o.prefix, "prefix", "", "only keys that begin with this")
	cmd.Flags().Int64Var(&o.rev, "rev", 0, "as of this revision (default the last one)")
	return cmd
}

// keyView is a key for programs.
type keyView struct {
	Key            string `json:"key"`
	KeyBase64      []byte `json:"keyBase64,omitempty"` // where the key is no text
	CreateRevision int64  `json:"createRevision"`
	ModRevision    int64  `json:"modRevision"`
	Version        int64  `json:"version"`
	Lease          string `json:"lease"`
	ValueBytes     int    `json:"valueBytes"`
}

func keyViewOf(k snapshot.KeyInfo) keyView {
	v := keyView{
		Key: string(k.Key), CreateRevision: k.CreateRevision, ModRevision: k.ModRevision,
		Version: k.Version, Lease: output.ID(uint64(k.Lease)), ValueBytes: k.ValueBytes,
	}
	if !utf8.Valid(k.Key) {
		v.Key, v.KeyBase64 = strconv.Quote(v.Key), k.Key
	}
	return v
}

// printFileKeys streams the keys in every format but a table, which has to know
// all of them first.
func printFileKeys(ctx context.Context, a *app.App, f *snapshot.File, opts snapshot.KeysOptions) error {
	if a.Format == output.Table {
		return printKeyTable(ctx, a, f, opts)
	}
	w := bufio.NewWriter(a.Out)
	var err error
	switch a.Format {
	case output.JSON:
		err = streamKeys(w, "[", ",", "\n]\n", func(each func(keyView) error) error { return eachKey(ctx, f, opts, each) })
	case output.YAML:
		err = eachKey(ctx, f, opts, func(k keyView) error {
			b, err := yaml.Marshal([]keyView{k})
			if err != nil {
				return err
			}
			_, err = w.Write(b)
			return err
		})
	default:
		err = eachKey(ctx, f, opts, func(k keyView) error {
			_, err := fmt.Fprintln(w, output.Printable(k.Key))
			return err
		})
	}
	return errors.Join(err, w.Flush())
}

func eachKey(ctx context.Context, f *snapshot.File, opts snapshot.KeysOptions, fn func(keyView) error) error {
	return f.Keys(ctx, opts, func(k snapshot.KeyInfo) error { return fn(keyViewOf(k)) })
}

// streamKeys writes a JSON array, an element a line.
func streamKeys(w io.Writer, open, between, end string, each func(func(keyView) error) error) error {
	lead := open // nothing is written before there is something to say
	err := each(func(k keyView) error {
		b, err := json.Marshal(k)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s\n%s", lead, b)
		lead = between
		return err
	})
	if err != nil {
		return err
	}
	if lead == open {
		end = open + end
	}
	_, err = io.WriteString(w, end)
	return err
}

func printKeyTable(ctx context.Context, a *app.App, f *snapshot.File, opts snapshot.KeysOptions) error {
	var rows [][]string
	err := eachKey(ctx, f, opts, func(k keyView) error {
		rows = append(rows, []string{
			k.Key, strconv.FormatInt(k.CreateRevision, 10), strconv.FormatInt(k.ModRevision, 10),
			strconv.FormatInt(k.Version, 10), k.Lease, strconv.Itoa(k.ValueBytes),
		})
		return nil
	})
	if err != nil {
		return err
	}
	return a.Print(output.Result{Table: func() ([]string, [][]string) {
		return []string{"key", "create revision", "mod revision", "version", "lease", "value bytes"}, rows
	}})
}
