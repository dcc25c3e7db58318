package ctl

import (
	"encoding/hex"
	"fmt"
	"io"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/client/pkg/v3/types"

	"github.com/etcdkit/etcdkit/internal/output"
)

// A kvView writes key-value pairs in the forms that many results share.
type kvView struct {
	hex       bool
	valueOnly bool
}

func (t *tree) kvView() kvView { return kvView{hex: t.Global.Hex} }

// pair writes a pair as two lines.
func (v kvView) pair(w io.Writer, kv *mvccpb.KeyValue) {
	if !v.valueOnly {
		v.line(w, kv.GetKey())
	}
	v.line(w, kv.GetValue())
}

func (v kvView) line(w io.Writer, b []byte) {
	if v.hex {
		b = hexBytes(b)
	}
	_, _ = w.Write(b)
	_, _ = io.WriteString(w, "\n")
}

// hexBytes writes each byte as \xNN.
func hexBytes(b []byte) []byte {
	out := make([]byte, 0, 4*len(b))
	for i := range b {
		out = append(out, '\\', 'x')
		out = hex.AppendEncode(out, b[i:i+1])
	}
	return out
}

// fields writes a pair as named fields.
func (v kvView) fields(w io.Writer, prefix string, kv *mvccpb.KeyValue) {
	fmt.Fprintf(w, "\"%sKey\" : %q\n", prefix, kv.GetKey())
	fmt.Fprintf(w, "\"%sCreateRevision\" : %d\n", prefix, kv.GetCreateRevision())
	fmt.Fprintf(w, "\"%sModRevision\" : %d\n", prefix, kv.GetModRevision())
	fmt.Fprintf(w, "\"%sVersion\" : %d\n", prefix, kv.GetVersion())
	fmt.Fprintf(w, "\"%sValue\" : %q\n", prefix, kv.GetValue())
	fmt.Fprintf(w, "\"%sLease\" : %s\n", prefix, v.lease(kv.GetLease()))
}

// lease writes a lease id in fields format. Upstream takes its sign along.
func (v kvView) lease(id int64) string {
	if v.hex {
		return fmt.Sprintf("%016x", id)
	}
	return fmt.Sprint(id)
}

// member writes a member's or cluster's id in fields format.
func (v kvView) member(id uint64) string {
	if v.hex {
		return types.ID(id).String()
	}
	return fmt.Sprint(id)
}

// header writes a response's header as named fields. A revision of zero is one
// that the response does not have.
func (v kvView) header(w io.Writer, h *pb.ResponseHeader) {
	fmt.Fprintln(w, `"ClusterID" :`, v.member(h.GetClusterId()))
	fmt.Fprintln(w, `"MemberID" :`, v.member(h.GetMemberId()))
	if h.GetRevision() > 0 {
		fmt.Fprintln(w, `"Revision" :`, h.GetRevision())
	}
	fmt.Fprintln(w, `"RaftTerm" :`, h.GetRaftTerm())
}

// lines returns a view of these lines.
func lines(all ...string) func(io.Writer) {
	return func(w io.Writer) {
		for _, line := range all {
			fmt.Fprintln(w, line)
		}
	}
}

// name returns the name of a user, a role or a key as the dialect shows it:
// natively a line break in it does not make a line of its own.
func (t *tree) name(s string) string {
	if !t.Dialect.GuardsTerminals() {
		return s
	}
	return output.Printable(s)
}

func (t *tree) names(all []string) []string {
	shown := make([]string, len(all))
	for i, s := range all {
		shown[i] = t.name(s)
	}
	return shown
}
