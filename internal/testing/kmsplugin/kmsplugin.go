// Package kmsplugin is a key management plugin for tests. It "decrypts" base64,
// which is how package kube's testdata/seal "encrypts".
package kmsplugin

import (
	"encoding/base64"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

// Options says how the plugin behaves.
type Options struct {
	KeyID string // of the current key
	Fail  bool   // every call fails, with a text that must not be shown
}

// Start serves both versions of the interface until the test ends, and returns
// the path of its socket.
func Start(t testing.TB, opts Options) (socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "kms") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket = filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(grpc.ForceServerCodec(raw{}), grpc.UnknownServiceHandler(opts.serve))
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return socket
}

func (o Options) serve(_ any, stream grpc.ServerStream) error {
	var request []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	if o.Fail {
		return status.Error(codes.Internal, "HIDDEN-MARKER")
	}
	method, _ := grpc.MethodFromServerStream(stream)
	var reply []byte
	switch {
	case strings.HasSuffix(method, "Status"):
		reply = field(3, []byte(o.KeyID))
	case method == "/v2.KeyManagementService/Decrypt", method == "/v1beta1.KeyManagementService/Decrypt":
		key, err := base64.StdEncoding.DecodeString(string(stored(request, strings.HasPrefix(method, "/v1beta1"))))
		if err != nil {
			return status.Error(codes.InvalidArgument, "not mine")
		}
		reply = field(1, key)
	}
	return stream.SendMsg(&reply)
}

func field(num protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), content)
}

// stored returns the encrypted key in a DecryptRequest: field 2 in the first
// version, field 1 in the second. All fields of both are texts or bytes.
func stored(request []byte, v1 bool) []byte {
	want := protowire.Number(1)
	if v1 {
		want = 2
	}
	for len(request) > 0 {
		num, _, n := protowire.ConsumeTag(request)
		content, m := protowire.ConsumeBytes(request[max(n, 0):])
		switch {
		case n < 0 || m < 0:
			return nil
		case num == want:
			return content
		}
		request = request[n+m:]
	}
	return nil
}

// raw hands messages on as they are.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

func (raw) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}

func (raw) Name() string { return "proto" }
