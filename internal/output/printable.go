package output

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"
)

// Printable returns text from outside as one line that no terminal takes for
// commands: control characters, line breaks, characters that reorder text and
// bytes that are not UTF-8 are replaced by escapes such as \x1b and \u202e.
func Printable(text string) string { return string(appendPrintable(nil, text, "")) }

// PrintableLines is Printable for text of several lines: line feeds and tabs stay.
func PrintableLines(text string) string { return string(appendPrintable(nil, text, "\n\t")) }

// appendPrintable appends text, in which the characters of keep are left alone
// though they are control characters. The escapes of characters beyond ASCII are
// those of JSON, so that JSON stays JSON.
func appendPrintable(b []byte, text, keep string) []byte {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b = fmt.Appendf(b, `\x%02x`, text[i])
		case strconv.IsGraphic(r), strings.ContainsRune(keep, r):
			b = append(b, text[i:i+size]...)
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r < utf8.RuneSelf:
			b = fmt.Appendf(b, `\x%02x`, r)
		default:
			for _, unit := range utf16.AppendRune(nil, r) {
				b = fmt.Appendf(b, `\u%04x`, unit)
			}
		}
		i += size
	}
	return b
}

// Guard returns a writer that makes what passes through it printable, but for
// line feeds and tabs. What a program itself has to tell a terminal, such as a
// colour, goes through [Raw].
// It may be used from several goroutines.
func Guard(w io.Writer) io.Writer { return &guard{w: w} }

type guard struct {
	w    io.Writer
	mu   sync.Mutex
	tail []byte // the beginning of a character whose other bytes are still to come
	buf  []byte
}

func (g *guard) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	text := string(append(g.tail, p...))
	end := len(text) - incomplete(text)
	g.tail = []byte(text[end:])
	g.buf = appendPrintable(g.buf[:0], text[:end], "\n\t")
	if _, err := g.w.Write(g.buf); err != nil {
		return 0, err
	}
	return len(p), nil
}

// end writes what a last, incomplete character left.
func (g *guard) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, _ = g.w.Write(appendPrintable(nil, string(g.tail), ""))
	g.tail = nil
}

// incomplete returns how many bytes at the end of text may be the beginning of a
// character.
func incomplete(text string) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		last := text[len(text)-n:]
		if utf8.RuneStart(last[0]) {
			if utf8.FullRuneInString(last) {
				return 0
			}
			return n
		}
	}
	return 0
}

// Raw writes bytes of the program's own, which no guard changes.
func Raw(w io.Writer, sequence string) {
	_, _ = io.WriteString(Unguarded(w), sequence)
}

// Unguarded returns the writer behind a guard, for what is not text for a
// person: a child process, or an escape sequence of our own.
func Unguarded(w io.Writer) io.Writer {
	for {
		switch outer := w.(type) {
		case *guard:
			w = outer.w
		case *sticky:
			w = outer.w
		case screen:
			w = outer.Writer
		default:
			return w
		}
	}
}

// ForPeople returns r with everything in its forms for people made printable:
// names of members, keys and messages come from outside. An exact result, whose
// bytes are the point, stays as it is.
func (r Result) ForPeople() Result {
	if r.Exact {
		return r
	}
	if simple := r.Simple; simple != nil {
		r.Simple = func(w io.Writer) {
			g := &guard{w: w}
			var guarded io.Writer = g
			if room := roomOf(w); room > 0 {
				guarded = Screen(g, room)
			}
			simple(guarded)
			g.end()
		}
	}
	if table := r.Table; table != nil {
		r.Table = func() ([]string, [][]string) {
			header, rows := table()
			return header, printableRows(rows)
		}
	}
	return r
}

func printableRows(rows [][]string) [][]string {
	printable := make([][]string, len(rows))
	for i, row := range rows {
		printable[i] = make([]string, len(row))
		for j, cell := range row {
			printable[i][j] = Printable(cell)
		}
	}
	return printable
}
