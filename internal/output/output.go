// Package output shows results: in words and tables for people, as JSON and
// YAML for programs. A command lists the forms of its result; whoever prints
// picks one.
package output

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"
)

// Format is a value of --write-out.
type Format string

// The formats of etcdctl, and those that etcdkit adds.
const (
	Simple   Format = "simple"
	Table    Format = "table"
	JSON     Format = "json"
	YAML     Format = "yaml"
	Fields   Format = "fields"
	Protobuf Format = "protobuf"
)

// Standard are the formats of every native command.
func Standard() []Format { return []Format{Simple, Table, JSON, YAML} }

// Parse returns the format called name, if it is one of those allowed.
func Parse(name string, allowed []Format) (Format, error) {
	if slices.Contains(allowed, Format(name)) {
		return Format(name), nil
	}
	names := make([]string, len(allowed))
	for i, f := range allowed {
		names[i] = string(f)
	}
	return "", fmt.Errorf("--write-out %q: this command has %s", name, strings.Join(names, ", "))
}

// Result is one result in each form it can be shown in. A form that is nil is
// not offered.
type Result struct {
	JSON   any                                       // what json and yaml encode
	Proto  proto.Message                             // protobuf
	Simple func(io.Writer)                           // words
	Fields func(io.Writer)                           // "Name" : value
	Table  func() (header []string, rows [][]string) // also shown for simple when Simple is nil
	Other  map[Format]func(io.Writer) error          // forms that only this command has
	Exact  bool                                      // the forms for people show stored bytes, which scripts take as they are
}

// MissingError says that a result has no such form.
type MissingError struct{ Format Format }

func (e *MissingError) Error() string { return fmt.Sprintf("no form %q for this result", e.Format) }

// Print writes the result in this format. The error is a *MissingError when the
// result does not have the form, else that of the writer.
func (f Format) Print(w io.Writer, r Result) error {
	out := &sticky{w: w}
	switch other := r.Other[f]; {
	case other != nil:
		return other(w)
	case f == JSON && r.JSON != nil:
		return printJSON(w, r.JSON)
	case f == YAML && r.JSON != nil:
		return printYAML(w, r.JSON)
	case f == Simple && r.Simple != nil:
		r.Simple(out)
	case f == Simple && r.Table != nil:
		header, rows := r.Table()
		Columns(out, header, rows)
	case f == Table && r.Table != nil:
		return printTable(out, r)
	case f == Table && r.Simple != nil:
		r.Simple(out)
	case f == Fields && r.Fields != nil:
		r.Fields(out)
	case f == Protobuf && r.Proto != nil:
		b, err := proto.Marshal(r.Proto)
		if err != nil {
			return fmt.Errorf("print protobuf: %w", err)
		}
		_, err = w.Write(b)
		return err
	default:
		return &MissingError{f}
	}
	return out.err
}

// printTable draws the box, or plain columns where the terminal has no room for
// a box.
func printTable(out *sticky, r Result) error {
	header, rows := r.Table()
	if room := roomOf(out); room == 0 || boxWidth(header, rows) <= room {
		if err := Box(out, header, rows); err != nil {
			return err
		}
	} else {
		Columns(out, header, rows)
	}
	return out.err
}

// printJSON writes one line, so that grep, wc and read work on it, and indents
// it for a person at a terminal.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if IsScreen(w) {
		enc.SetIndent("", "  ")
	}
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("print json: %w", err)
	}
	return nil
}

func printYAML(w io.Writer, v any) error {
	b, err := yaml.Marshal(v)
	if err != nil {
		return fmt.Errorf("print yaml: %w", err)
	}
	_, err = w.Write(b)
	return err
}

// sticky remembers the first error of a writer, so that the views need not look.
type sticky struct {
	w   io.Writer
	err error
}

func (s *sticky) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	var n int
	n, s.err = s.w.Write(p)
	return n, s.err
}
