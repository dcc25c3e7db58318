package output

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/tw"
)

const (
	gap       = 2  // between columns
	narrowest = 12 // what a column can be narrowed to
)

// Screen returns a writer to a terminal of this many columns, 0 where the width
// is unknown. Tables are made to fit it, and JSON is indented. The width goes
// with the writer, so that no view has to pass it on.
func Screen(w io.Writer, columns int) io.Writer { return screen{w, max(columns, 0)} }

// IsScreen reports whether w writes to a terminal.
func IsScreen(w io.Writer) bool {
	_, ok := w.(screen)
	return ok
}

type screen struct {
	io.Writer
	columns int
}

// roomOf returns the columns of the terminal that w writes to, 0 where it
// writes to none.
func roomOf(w io.Writer) int {
	switch w := w.(type) {
	case screen:
		return w.columns
	case *sticky:
		return roomOf(w.w)
	}
	return 0
}

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

// boxWidth is the width of the table that Box draws: a space and a line around
// each cell.
func boxWidth(header []string, rows [][]string) int {
	width := 1
	for _, w := range widths(header, rows) {
		width += w + 3
	}
	return width
}

// Columns writes a table as plain columns, for people and for line-based tools
// alike. On a [Screen] too narrow for it one wide column is narrowed, whose
// longer cells get a line of their own; where that is not enough, each row
// becomes a block of "name: value" lines. Nothing is ever cut off. Cells are made
// [Printable]. A table of
// names and values is left as it is: blocks would not read better.
func Columns(w io.Writer, header []string, rows [][]string) {
	rows = printableRows(rows)
	columns, room := widths(header, rows), roomOf(w)
	if room > 0 && len(header) > 2 && len(rows) > 0 && !narrow(columns, header, room) {
		blocks(w, header, rows)
		return
	}
	upper := make([]string, len(header))
	for i, name := range header {
		upper[i] = strings.ToUpper(name)
	}
	line(w, columns, upper)
	for _, row := range rows {
		line(w, columns, row)
	}
}

func widths(header []string, rows [][]string) []int {
	columns := make([]int, len(header))
	for _, row := range append([][]string{header}, rows...) {
		for i, cell := range row {
			columns[i] = max(columns[i], utf8.RuneCountInString(cell))
		}
	}
	return columns
}

// narrow makes columns fit the room, by the widest but the last, and tells
// whether they do. A last one would gain nothing: no cell follows it.
func narrow(columns []int, header []string, room int) bool {
	width, widest := -gap, 0
	for i, c := range columns {
		width += c + gap
		if i < len(columns)-1 && c > columns[widest] {
			widest = i
		}
	}
	if width <= room {
		return true
	}
	left := columns[widest] - (width - room)
	if left < max(narrowest, utf8.RuneCountInString(header[widest])) {
		return false
	}
	columns[widest] = left
	return true
}

// line writes a row. What follows a cell that is wider than its column begins
// on the next line, in its place.
func line(w io.Writer, columns []int, row []string) {
	var b strings.Builder
	start := 0 // where the cell's column begins
	for i, cell := range row {
		b.WriteString(cell)
		if i == len(row)-1 {
			break
		}
		free := columns[i] - utf8.RuneCountInString(cell)
		if free < 0 && strings.Join(row[i+1:], "") == "" {
			break // a heading
		}
		start += columns[i] + gap
		if free >= 0 {
			b.WriteString(strings.Repeat(" ", free+gap))
		} else {
			b.WriteString("\n" + strings.Repeat(" ", start))
		}
	}
	fmt.Fprintln(w, b.String())
}

// blocks writes a row's cells one below the other. A row that has only its
// first cell is a heading.
func blocks(w io.Writer, header []string, rows [][]string) {
	label := 0
	for _, row := range rows {
		for j, cell := range row[1:] {
			if cell != "" {
				label = max(label, utf8.RuneCountInString(header[j+1])+len(":"))
			}
		}
	}
	label = max(label, utf8.RuneCountInString(header[0])+len(":"))
	for i, row := range rows {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if strings.Join(row[1:], "") == "" {
			fmt.Fprintln(w, row[0])
			continue
		}
		for j, cell := range row {
			if cell != "" {
				fmt.Fprintf(w, "%-*s %s\n", label, strings.ToLower(header[j])+":", cell)
			}
		}
	}
}

// Text writes a line of words, broken between them where a [Screen] is too
// narrow; what is broken off is indented by so many columns. The line is made
// [Printable].
func Text(w io.Writer, indent int, text string) {
	text = Printable(text)
	room := roomOf(w)
	if room <= 2*indent || utf8.RuneCountInString(text) <= room {
		fmt.Fprintln(w, text)
		return
	}
	begin := len(text) - len(strings.TrimLeft(text, " "))
	line, empty := text[:begin], true
	for word := range strings.SplitSeq(text[begin:], " ") {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > room {
			fmt.Fprintln(w, strings.TrimRight(line, " "))
			line, empty = strings.Repeat(" ", indent), true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	fmt.Fprintln(w, line)
}
