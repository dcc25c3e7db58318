package store

import (
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// watched is a body that knows whether it was read after its request.
type watched struct {
	left     int
	returned atomic.Bool
	late     atomic.Int32
}

func (w *watched) Read(p []byte) (int, error) {
	if w.returned.Load() {
		w.late.Add(1)
	}
	if w.left == 0 {
		return 0, io.EOF
	}
	n := min(w.left, len(p))
	w.left -= n
	return n, nil
}

// A server that answers before it has read the body: what is read of it afterwards
// may be the next part's.
func TestABodyIsNotReadAfterItsRequest(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const size = 4 << 30 // more than is sent before the client hangs up
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = conn.Read(make([]byte, 1024))
		_, _ = io.WriteString(conn, "HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn)
	}()
	tr, err := newTransport(S3Options{StallTimeout: time.Minute, Proxy: "none"})
	if err != nil {
		t.Fatal(err)
	}
	body := &watched{left: size}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+l.Addr().String()+"/x", body)
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = size
	resp, err := tr.RoundTrip(req)
	body.returned.Store(true)
	if err != nil {
		t.Fatal(err)
	}
	<-drained // the client hangs up
	if n := body.late.Load(); n > 0 {
		t.Errorf("the body was read %d times after its request had returned", n)
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
}
