package ctl

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/proto"

	"github.com/etcdkit/etcdkit/internal/output"
)

// A result is one response in each form that it can be shown in; a nil form is
// one that upstream does not offer.
type result struct {
	json           any  // as upstream encodes it; natively ids in hex come beside the numbers
	hexJSON        any  // json with --hex, where upstream makes a difference
	native         any  // json and yaml natively, where hex ids beside json are not all
	exact          bool // simple and fields show stored bytes as they are
	proto          proto.Message
	simple, fields func(io.Writer)
	table          func() (header []string, rows [][]string)
}

// print shows r on standard output in the format asked for.
func (t *tree) print(r result) error {
	out := bufio.NewWriter(t.Out)
	if err := t.printTo(out, r); err != nil {
		return err
	}
	return out.Flush()
}

func (t *tree) printTo(w io.Writer, r result) error {
	if t.upstream() {
		return t.printUpstream(w, r)
	}
	native := output.Result{Proto: r.proto, Simple: r.simple, Fields: r.fields, Table: r.table, JSON: r.native, Exact: r.exact}
	if native.JSON == nil && (t.Format == output.JSON || t.Format == output.YAML) {
		withIDs, err := withHexIDs(r.json)
		if err != nil {
			return err
		}
		native.JSON = withIDs
	}
	return t.PrintTo(w, native)
}

// printUpstream writes the very bytes of etcdctl. A form that is missing is an
// error only now, after the request.
func (t *tree) printUpstream(w io.Writer, r result) error {
	form := output.Result{Proto: r.proto}
	switch t.Format {
	case output.JSON:
		if t.Global.Hex && r.hexJSON != nil {
			return compactJSON(w, r.hexJSON)
		}
		if r.json != nil {
			return compactJSON(w, r.json)
		}
	case output.Simple:
		form.Simple = r.simple
	case output.Fields:
		form.Fields = r.fields
	case output.Table:
		form.Table = r.table
	}
	err := t.Format.Print(w, form)
	if missing, ok := errors.AsType[*output.MissingError](err); ok {
		return code(exitBadFeature, "%s not supported as output format", missing.Format)
	}
	return err
}

func compactJSON(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("print json: %w", err)
	}
	_, err = w.Write(append(b, '\n'))
	return err
}
