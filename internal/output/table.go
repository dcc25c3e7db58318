package output

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/tw"
)

// Box draws a table as upstream's etcdctl does: box characters, right-aligned,
// upper-case headers, nothing wrapped.
func Box(w io.Writer, header []string, rows [][]string) error {
	cfg := tablewriter.NewConfigBuilder().WithRowAlignment(tw.AlignRight)
	table := tablewriter.NewTable(w, tablewriter.WithConfig(cfg.Build()))
	table.Header(header)
	if err := table.Bulk(rows); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	if err := table.Render(); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	return nil
}

// Columns writes the result's table as plain columns, for people and for
// line-based tools alike.
func Columns(w io.Writer, r Result) {
	header, rows := r.Table()
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, strings.ToUpper(strings.Join(header, "\t")))
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	_ = t.Flush() // the writer remembers its error
}
