package ctl

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"

	"github.com/etcdkit/etcdkit/internal/output"
)

// The writers ignore errors of w: it remembers the first one for its Flush.

// simpleRange writes a key and its value, a line each.
type simpleRange struct {
	w    *bufio.Writer
	view kvView
}

func (s *simpleRange) begin(*pb.RangeResponse)  {}
func (s *simpleRange) pair(kv *mvccpb.KeyValue) { s.view.pair(s.w, kv) }
func (s *simpleRange) end(*pb.RangeResponse)    {}

// nativeRange is simpleRange with etcdkit's own choices of what to print.
type nativeRange struct {
	w    *bufio.Writer
	view kvView
	opts getOptions
}

func (n *nativeRange) begin(*pb.RangeResponse) {}

func (n *nativeRange) pair(kv *mvccpb.KeyValue) {
	if n.opts.raw {
		_, _ = n.w.Write(kv.GetValue())
		return
	}
	if !n.opts.valueOnly {
		n.item(kv.GetKey())
	}
	if !n.opts.keysOnly {
		n.item(kv.GetValue())
	}
}

func (n *nativeRange) item(b []byte) {
	if !n.opts.null {
		n.view.line(n.w, b)
		return
	}
	if n.view.hex {
		b = hexBytes(b)
	}
	_, _ = n.w.Write(b)
	_ = n.w.WriteByte(0)
}

func (n *nativeRange) end(head *pb.RangeResponse) {
	if n.opts.countOnly {
		fmt.Fprintln(n.w, head.GetCount())
	}
}

// fieldsRange writes named fields.
type fieldsRange struct {
	w    *bufio.Writer
	view kvView
}

func (f *fieldsRange) begin(head *pb.RangeResponse) { f.view.header(f.w, head.GetHeader()) }
func (f *fieldsRange) pair(kv *mvccpb.KeyValue)     { f.view.fields(f.w, "", kv) }
func (f *fieldsRange) end(head *pb.RangeResponse)   { f.view.getFieldsEnd(f.w, head) }

// protoRange writes the encoded response: its fields in ascending order, as one
// message would be.
type protoRange struct {
	w   *bufio.Writer
	buf []byte
}

func (p *protoRange) begin(head *pb.RangeResponse) {
	if head.GetHeader() != nil {
		p.message(1, head.GetHeader())
	}
}

func (p *protoRange) pair(kv *mvccpb.KeyValue) { p.message(2, kv) }

func (p *protoRange) message(number protowire.Number, m proto.Message) {
	p.buf = protowire.AppendTag(p.buf[:0], number, protowire.BytesType)
	p.buf = protowire.AppendVarint(p.buf, uint64(proto.Size(m)))
	p.buf, _ = proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(p.buf, m)
	_, _ = p.w.Write(p.buf)
}

func (p *protoRange) end(head *pb.RangeResponse) {
	rest, _ := proto.Marshal(&pb.RangeResponse{More: head.GetMore(), Count: head.GetCount()})
	_, _ = p.w.Write(rest)
}

// jsonRange writes what encoding/json makes of the response, in one line.
type jsonRange struct {
	w     *bufio.Writer
	buf   []byte
	pairs int
}

func (j *jsonRange) begin(head *pb.RangeResponse) {
	_ = j.w.WriteByte('{')
	if head.GetHeader() == nil {
		return
	}
	header, _ := json.Marshal(head.GetHeader())
	_, _ = io.WriteString(j.w, `"header":`)
	_, _ = j.w.Write(header)
}

func (j *jsonRange) pair(kv *mvccpb.KeyValue) {
	start := `,"kvs":[`
	if j.pairs > 0 {
		start = ","
	}
	j.pairs++
	j.buf = append(j.buf[:0], start...)
	j.buf = appendKV(j.buf, kv, false, false)
	_, _ = j.w.Write(j.buf)
}

func (j *jsonRange) end(head *pb.RangeResponse) {
	if j.pairs > 0 {
		_ = j.w.WriteByte(']')
	}
	if head.GetMore() {
		_, _ = io.WriteString(j.w, `,"more":true`)
	}
	if head.GetCount() != 0 {
		fmt.Fprintf(j.w, `,"count":%d`, head.GetCount())
	}
	_, _ = io.WriteString(j.w, "}\n")
}

// appendKV appends kv as encoding/json encodes it: no field that is zero, bytes
// in base64. Natively the lease's id is there in hexadecimal too, and text where
// it is asked for.
func appendKV(b []byte, kv *mvccpb.KeyValue, hexLease, text bool) []byte {
	b = append(b, '{')
	if len(kv.GetKey()) > 0 {
		b = appendBytes(b, "key", kv.GetKey(), text)
	}
	for _, n := range []struct {
		name  string
		value int64
	}{{"create_revision", kv.GetCreateRevision()}, {"mod_revision", kv.GetModRevision()}, {"version", kv.GetVersion()}} {
		if n.value != 0 {
			b = strconv.AppendInt(appendName(b, n.name), n.value, 10)
		}
	}
	if len(kv.GetValue()) > 0 {
		b = appendBytes(b, "value", kv.GetValue(), text)
	}
	if kv.GetLease() != 0 {
		b = strconv.AppendInt(appendName(b, "lease"), kv.GetLease(), 10)
		if hexLease {
			b = append(appendName(b, "lease_hex"), '"')
			b = append(append(b, output.ID(uint64(kv.GetLease()))...), '"')
		}
	}
	return append(b, '}')
}

func appendName(b []byte, name string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = append(append(b, '"'), name...)
	return append(b, `":`...)
}

func appendBytes(b []byte, name string, value []byte, text bool) []byte {
	b = append(appendName(b, name), '"')
	b = append(base64.StdEncoding.AppendEncode(b, value), '"')
	if !text || !utf8.Valid(value) {
		return b
	}
	quoted, _ := json.Marshal(string(value))
	return append(appendName(b, name+"_text"), quoted...)
}

// nativeJSONRange writes hex ids beside the numbers, and fields that are zero of
// the response: one line, or for a person a pair a line.
type nativeJSONRange struct {
	w        *bufio.Writer
	text     bool
	indented bool
	buf      []byte
	pairs    int
}

// broken returns text with line breaks and indents for a person, else without.
func (j *nativeJSONRange) broken(text string) string {
	if j.indented {
		return text
	}
	return strings.NewReplacer("\n", "", "  ", "", ": ", ":").Replace(text)
}

func (j *nativeJSONRange) begin(head *pb.RangeResponse) {
	ids, _ := withHexIDs(head.GetHeader())
	header, _ := json.Marshal(ids)
	_, _ = io.WriteString(j.w, j.broken("{\n  \"header\": "))
	_, _ = j.w.Write(header)
	_, _ = io.WriteString(j.w, j.broken(",\n  \"kvs\": ["))
}

func (j *nativeJSONRange) pair(kv *mvccpb.KeyValue) {
	start := j.broken(",\n    ")
	if j.pairs == 0 {
		start = j.broken("\n    ")
	}
	j.pairs++
	j.buf = appendKV(append(j.buf[:0], start...), kv, true, j.text)
	_, _ = j.w.Write(j.buf)
}

func (j *nativeJSONRange) end(head *pb.RangeResponse) {
	if j.pairs > 0 {
		_, _ = io.WriteString(j.w, j.broken("\n  "))
	}
	fmt.Fprintf(j.w, j.broken("],\n  \"more\": %t,\n  \"count\": %d\n}")+"\n", head.GetMore(), head.GetCount())
}

// yamlRange writes a document with a flow mapping for each pair.
type yamlRange struct {
	w     *bufio.Writer
	text  bool
	buf   []byte
	pairs int
}

func (y *yamlRange) begin(head *pb.RangeResponse) {
	ids, _ := withHexIDs(struct {
		Header *pb.ResponseHeader `json:"header"`
	}{head.GetHeader()})
	header, _ := yaml.Marshal(ids)
	_, _ = y.w.Write(header)
	_, _ = io.WriteString(y.w, "kvs:")
}

func (y *yamlRange) pair(kv *mvccpb.KeyValue) {
	y.pairs++
	y.buf = appendKV(append(y.buf[:0], "\n- "...), kv, true, y.text) // JSON is YAML
	_, _ = y.w.Write(y.buf)
}

func (y *yamlRange) end(head *pb.RangeResponse) {
	if y.pairs == 0 {
		_, _ = io.WriteString(y.w, " []")
	}
	fmt.Fprintf(y.w, "\nmore: %t\ncount: %d\n", head.GetMore(), head.GetCount())
}
