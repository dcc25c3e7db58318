package kube

import (
	"fmt"

	"google.golang.org/grpc/status"
)

// rawCodec hands messages to gRPC as they are: the plugin's interface is three
// small messages, which are read and written by hand.
type rawCodec struct{}

// Marshal implements encoding.Codec.
func (rawCodec) Marshal(v any) ([]byte, error) {
	b, ok := v.(*[]byte)
	if !ok {
		return nil, fmt.Errorf("encode message: %T is not bytes", v)
	}
	return *b, nil
}

// Unmarshal implements encoding.Codec.
func (rawCodec) Unmarshal(data []byte, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("decode message: %T is not bytes", v)
	}
	*b = append([]byte(nil), data...)
	return nil
}

// Name implements encoding.Codec; the plugin sees "application/grpc+proto".
func (rawCodec) Name() string { return "proto" }

// grpcCode is the code of a failed call, without its text.
func grpcCode(err error) string { return status.Code(err).String() }
