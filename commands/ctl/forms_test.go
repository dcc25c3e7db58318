package ctl

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/output"
)

// show writes a response through the writer of a range, in two pieces.
func show(t testing.TB, d cli.Dialect, f output.Format, opts getOptions, r *pb.RangeResponse) []byte {
	t.Helper()
	var out bytes.Buffer
	tr := &tree{App: app.New("test", d, &cli.Env{Out: &out, Err: io.Discard})}
	tr.Format = f
	w := bufio.NewWriter(&out)
	form, err := rangeForm(tr, opts, w)
	if err != nil {
		t.Fatal(err)
	}
	form.begin(&pb.RangeResponse{Header: r.Header, More: r.More, Count: r.Count})
	for _, kv := range r.Kvs {
		form.pair(kv)
	}
	form.end(r)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// FuzzRangeForms shows that what is written piece by piece is what encoding the
// whole response gives, that json and yaml stay readable, and that no bytes make
// a form panic.
func FuzzRangeForms(f *testing.F) {
	f.Add([]byte("key"), []byte("value"), int64(2), int64(3), int64(1), int64(0), uint64(1), true, int64(9))
	f.Add([]byte("\x00\xff<&>\u2028"), []byte{}, int64(-1), int64(0), int64(0), int64(-7), uint64(1<<63), false, int64(0))
	f.Fuzz(func(t *testing.T, key, value []byte, create, mod, version, lease int64, id uint64, more bool, count int64) {
		kv := &mvccpb.KeyValue{Key: key, Value: value, CreateRevision: create, ModRevision: mod, Version: version, Lease: lease}
		r := &pb.RangeResponse{Header: &pb.ResponseHeader{ClusterId: id, MemberId: id, Revision: mod}, Kvs: []*mvccpb.KeyValue{kv, kv}, More: more, Count: count}
		want, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := show(t, cli.Upstream, output.JSON, getOptions{}, r); string(got) != string(want)+"\n" {
			t.Errorf("json\n%s\nwant\n%s", got, want)
		}
		if want, _ = proto.Marshal(r); !bytes.Equal(show(t, cli.Upstream, output.Protobuf, getOptions{}, r), want) {
			t.Error("protobuf differs from the message encoded as a whole")
		}
		if got := show(t, cli.Native, output.JSON, getOptions{text: true}, r); !json.Valid(got) {
			t.Errorf("not json: %s", got)
		}
		var doc any
		if got := show(t, cli.Native, output.YAML, getOptions{text: true}, r); yaml.Unmarshal(got, &doc) != nil {
			t.Errorf("not yaml: %q", got)
		}
		for _, f := range []output.Format{output.Simple, output.Fields} {
			show(t, cli.Upstream, f, getOptions{}, r)
			show(t, cli.Native, f, getOptions{null: true}, r)
		}
	})
}

func TestRawWritesTheBytesOfValuesAlone(t *testing.T) {
	r := &pb.RangeResponse{Kvs: []*mvccpb.KeyValue{{Key: []byte("a"), Value: []byte("\x001\n")}, {Key: []byte("b"), Value: []byte("2")}}, Count: 2}
	for name, tc := range map[string]struct {
		opts getOptions
		want string
	}{
		"raw":              {getOptions{raw: true}, "\x001\n2"},
		"null":             {getOptions{null: true}, "a\x00\x001\n\x00b\x002\x00"},
		"null, keys":       {getOptions{null: true, keysOnly: true}, "a\x00b\x00"},
		"null, values":     {getOptions{null: true, valueOnly: true}, "\x001\n\x002\x00"},
		"keys":             {getOptions{keysOnly: true}, "a\nb\n"},
		"values":           {getOptions{valueOnly: true}, "\x001\n\n2\n"},
		"count alone":      {getOptions{countOnly: true}, "a\n\x001\n\nb\n2\n2\n"},
		"keys with values": {getOptions{}, "a\n\x001\n\nb\n2\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := show(t, cli.Native, output.Simple, tc.opts, r); string(got) != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
