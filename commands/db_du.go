package commands

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/output"
	"github.com/etcdkit/etcdkit/internal/progress"
	"github.com/etcdkit/etcdkit/snapshot"
)

const dbDuHelp = `Adds up what uses the space in a snapshot file or the database of a data
directory: by prefix, and where the keyspace is Kubernetes', by resource and by
namespace; and names the largest and the most revised keys. History is older
revisions and deletions: what a compaction and a defragmentation would free.

Exit codes: 0 shown, 2 wrong usage, 3 damaged or no database, 4 the file is not
readable or locked.`

func newDBDuCmd(a *app.App) *cobra.Command {
	d := &dbFile{a: a}
	var o snapshot.UsageOptions
	var prefix string
	var limit int
	cmd := &cobra.Command{
		Use: "du FILE|DIR", Short: "Add up what uses the space, by prefix, resource and namespace", Long: dbDuHelp,
		Example: "  etcdkit db du backup.db\n  etcdkit db du /var/lib/etcd --prefix /registry/events/ --depth 3 --top 20",
		Args:    cobra.ExactArgs(1),
		RunE: a.Run(func(ctx context.Context, args []string) error {
			if o.Depth < 0 || o.Top < 0 || limit < 0 {
				return cli.Usagef("--depth, --top and --limit cannot be negative")
			}
			var u *snapshot.Usage
			err := d.with(ctx, args[0], func(f *snapshot.File, update progress.Func) (err error) {
				o.Prefix, o.Progress = []byte(prefix), update
				u, err = f.Usage(ctx, o)
				return err
			})
			if err != nil {
				return err
			}
			v := usageOf(u)
			return a.Print(output.Result{JSON: v, Simple: func(w io.Writer) { v.simple(w, limit) }, Table: v.table})
		}),
	}
	d.bind(cmd)
	cmd.Flags().StringVar(&prefix, "prefix", "", "only keys that begin with this")
	cmd.Flags().IntVar(&o.Depth, "depth", 2, "parts of a key, between slashes, that make a prefix")
	cmd.Flags().IntVar(&o.Top, "top", 10, "keys to name")
	cmd.Flags().IntVar(&limit, "limit", 20, "lines of each list for people, 0 for all")
	return cmd
}

// usageView is what db du shows.
type usageView struct {
	Total       useView   `json:"total"`
	Kubernetes  string    `json:"kubernetesPrefix"`
	Prefixes    []useView `json:"prefixes"`
	Resources   []useView `json:"resources"`
	Namespaces  []useView `json:"namespaces"`
	Largest     []keyUse  `json:"largestKeys"`
	MostRevised []keyUse  `json:"mostRevisedKeys"`
}

type useView struct {
	Name         string `json:"name"`
	Keys         int    `json:"keys"`
	Bytes        int64  `json:"bytes"`
	Revisions    int    `json:"revisions"`
	HistoryBytes int64  `json:"historyBytes"`
}

type keyUse struct {
	Key       string `json:"key"`
	Live      bool   `json:"live"`
	Bytes     int64  `json:"bytes"`
	Revisions int    `json:"revisions"`
}

func usageOf(u *snapshot.Usage) usageView {
	v := usageView{
		Total: useView(u.Total), Kubernetes: u.Kubernetes,
		Prefixes: uses(u.Prefixes), Resources: uses(u.Resources), Namespaces: uses(u.Namespaces),
		Largest: keyUses(u.Largest), MostRevised: keyUses(u.Revised),
	}
	v.Total.Name = "all"
	return v
}

func uses(all []snapshot.Use) []useView {
	list := make([]useView, len(all))
	for i, u := range all {
		list[i] = useView(u)
	}
	return list
}

func keyUses(all []snapshot.KeyUse) []keyUse {
	list := make([]keyUse, len(all))
	for i, k := range all {
		list[i] = keyUse(k)
	}
	return list
}

// table is the prefixes alone.
func (v usageView) table() (header []string, rows [][]string) {
	for _, u := range append([]useView{v.Total}, v.Prefixes...) {
		rows = append(rows, u.row())
	}
	return []string{"prefix", "keys", "bytes", "revisions", "history bytes"}, rows
}

func (u useView) row() []string {
	name := u.Name
	if name == "" {
		name = "(none)"
	}
	return []string{name, strconv.Itoa(u.Keys), output.Bytes(u.Bytes), strconv.Itoa(u.Revisions), output.Bytes(u.HistoryBytes)}
}

func (v usageView) simple(w io.Writer, limit int) {
	var rows [][]string
	section := func(title string, all []useView) {
		if len(all) == 0 {
			return
		}
		rows = append(rows, []string{title, "", "", "", ""})
		for i, u := range all {
			if i == limit && limit > 0 {
				rows = append(rows, []string{fmt.Sprintf("  and %d more", len(all)-limit), "", "", "", ""})
				break
			}
			row := u.row()
			row[0] = "  " + row[0]
			rows = append(rows, row)
		}
	}
	section("all", []useView{v.Total})
	section("by prefix", v.Prefixes)
	section("by resource", v.Resources)
	section("by namespace", v.Namespaces)
	output.Columns(w, []string{"name", "keys", "bytes", "revisions", "history"}, rows)
	keyLines(w, "largest keys", v.Largest)
	keyLines(w, "most revised keys", v.MostRevised)
}

func keyLines(w io.Writer, title string, keys []keyUse) {
	fmt.Fprintln(w, title)
	for _, k := range keys {
		state := ""
		if !k.Live {
			state = ", deleted"
		}
		output.Text(w, 4, fmt.Sprintf("  %q: %s, %d revisions%s", k.Key, output.Bytes(k.Bytes), k.Revisions, state))
	}
}
