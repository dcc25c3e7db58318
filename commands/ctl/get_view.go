package ctl

import (
	"bufio"
	"fmt"
	"io"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/etcdkit/etcdkit/internal/etcd"
	"github.com/etcdkit/etcdkit/internal/output"
)

// getResult is for responses that are in memory as a whole.
func (t *tree) getResult(r *pb.RangeResponse) result {
	v := t.kvView()
	return result{
		json: r, proto: r,
		simple: func(w io.Writer) { v.getSimple(w, r) },
		exact:  true,
		fields: func(w io.Writer) { v.getFields(w, r) },
	}
}

func (v kvView) getSimple(w io.Writer, r *pb.RangeResponse) {
	for _, kv := range r.GetKvs() {
		v.pair(w, kv)
	}
}

func (v kvView) getFields(w io.Writer, r *pb.RangeResponse) {
	v.header(w, r.GetHeader())
	for _, kv := range r.GetKvs() {
		v.fields(w, "", kv)
	}
	v.getFieldsEnd(w, r)
}

func (v kvView) getFieldsEnd(w io.Writer, r *pb.RangeResponse) {
	fmt.Fprintln(w, `"More" :`, r.GetMore())
	fmt.Fprintln(w, `"Count" :`, r.GetCount())
}

// A rangeWriter writes a range piece by piece.
type rangeWriter interface {
	begin(head *pb.RangeResponse)
	pair(kv *mvccpb.KeyValue)
	end(head *pb.RangeResponse)
}

// getView shows what get reads, as it arrives.
type getView struct {
	out   *bufio.Writer
	form  func() (rangeWriter, error)
	inUse rangeWriter
	head  *pb.RangeResponse
}

func newGetView(t *tree, opts getOptions) *getView {
	g := &getView{out: bufio.NewWriterSize(t.Out, 64<<10)}
	g.form = func() (rangeWriter, error) { return rangeForm(t, opts, g.out) }
	return g
}

// rangeForm picks the writer for the format. Upstream refuses what does not go
// with the format only after the request.
func rangeForm(t *tree, opts getOptions, w *bufio.Writer) (rangeWriter, error) {
	if t.upstream() {
		switch {
		case opts.countOnly && t.Format != output.Fields:
			return nil, badArgs("--count-only is only for `--write-out=fields`")
		case opts.valueOnly && t.Format != output.Simple:
			return nil, badArgs("print-value-only is only for `--write-out=simple`")
		case t.Format == output.Table:
			return nil, code(exitBadFeature, "table not supported as output format")
		}
	}
	v := t.kvView()
	v.valueOnly = opts.valueOnly
	switch t.Format {
	case output.JSON:
		if t.upstream() {
			return &jsonRange{w: w}, nil
		}
		return &nativeJSONRange{w: w, text: opts.text, indented: output.IsScreen(t.Screen(t.Out))}, nil
	case output.YAML:
		return &yamlRange{w: w, text: opts.text}, nil
	case output.Fields:
		return &fieldsRange{w, v}, nil
	case output.Protobuf:
		return &protoRange{w: w}, nil
	}
	if t.upstream() {
		return &simpleRange{w, v}, nil
	}
	return &nativeRange{w: w, view: v, opts: opts}, nil
}

// sink takes what an etcd.Reader reads.
func (g *getView) sink() etcd.Sink { return etcd.Sink{Head: g.begin, Pairs: g.pairs} }

func (g *getView) begin(head *pb.RangeResponse) error {
	form, err := g.form()
	if err != nil {
		return err
	}
	g.inUse, g.head = form, head
	form.begin(head)
	return g.out.Flush()
}

func (g *getView) pairs(kvs []*mvccpb.KeyValue) error {
	for _, kv := range kvs {
		g.inUse.pair(kv)
	}
	// Shown at once: what comes next may take a while.
	return g.out.Flush()
}

// end closes what was read. After an error in the middle, what came before it
// has been shown and stays open-ended.
func (g *getView) end(err error) error {
	if err != nil {
		return err
	}
	g.inUse.end(g.head)
	return g.out.Flush()
}

// whole shows a response that is in memory as a whole.
func (g *getView) whole(r *pb.RangeResponse, err error) error {
	if err != nil {
		return err
	}
	if err := g.begin(r); err != nil {
		return err
	}
	return g.end(g.pairs(r.GetKvs()))
}
