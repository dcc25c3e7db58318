// Package faultproxy stands between a client and a server and breaks their
// talk in ways that a test scripts: TCP for bytes that stop or are cut, HTTP
// for answers that an object store might give.
package faultproxy

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// AtOnce is a number of bytes after which a fault strikes: none at all.
const AtOnce = -1

// Faults says what goes wrong with connections. The zero value is nothing.
type Faults struct {
	Refuse   bool // new connections are closed at once
	Swallow  bool // the server is never reached: what clients send is lost, nothing is answered
	ToServer Flow
	ToClient Flow
}

// Flow says what goes wrong in one direction. Bytes are counted on each
// connection, from its start or the last Set; 0 means never.
type Flow struct {
	CutAfter   int64         // close the connection after so many bytes
	StallAfter int64         // after so many bytes, keep it open and pass nothing on
	Delay      time.Duration // wait before each piece
	Rate       int64         // most bytes per second
}

// TCP is a proxy in front of one server. It ends with the test.
type TCP struct {
	listener net.Listener
	target   string
	ctx      context.Context // ends with the proxy
	cancel   context.CancelFunc

	mu       sync.Mutex
	faults   Faults
	changed  chan struct{} // closed at the next Set
	conns    map[net.Conn]struct{}
	accepted int
	wg       sync.WaitGroup
}

// NewTCP starts a proxy in front of target, given as host:port or as a URL.
func NewTCP(t testing.TB, target string) *TCP {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if _, addr, ok := strings.Cut(target, "://"); ok {
		target = addr
	}
	p := &TCP{listener: l, target: target, changed: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.wg.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Addr returns where the proxy listens, as host:port.
func (p *TCP) Addr() string { return p.listener.Addr().String() }

// Set changes what goes wrong, on open connections too, and counts their bytes
// anew.
func (p *TCP) Set(f Faults) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = f
	close(p.changed)
	p.changed = make(chan struct{})
}

// Accepted returns how many connections clients have opened so far.
func (p *TCP) Accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

// CutAll closes every open connection now.
func (p *TCP) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *TCP) now() (Faults, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.faults, p.changed
}

func (p *TCP) close() {
	p.cancel()
	_ = p.listener.Close()
	p.CutAll()
	p.wg.Wait()
}

func (p *TCP) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.accepted++
		refuse := p.faults.Refuse
		p.mu.Unlock()
		if refuse {
			_ = client.Close()
			continue
		}
		p.wg.Go(func() { p.serve(client) })
	}
}

// track makes the connection known to CutAll until it is closed.
func (p *TCP) track(c net.Conn) (untrack func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c] = struct{}{}
	if p.ctx.Err() != nil {
		_ = c.Close()
	}
	return func() {
		_ = c.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, c)
	}
}

func (p *TCP) serve(client net.Conn) {
	defer p.track(client)()
	if f, _ := p.now(); f.Swallow {
		_, _ = io.Copy(io.Discard, client)
		<-p.ctx.Done() // a client that has sent all waits for an answer still
		return
	}
	var dialer net.Dialer
	server, err := dialer.DialContext(p.ctx, "tcp", p.target)
	if err != nil {
		return
	}
	defer p.track(server)()
	var both sync.WaitGroup
	both.Go(func() { p.pass(server, client, func(f Faults) Flow { return f.ToServer }) })
	both.Go(func() { p.pass(client, server, func(f Faults) Flow { return f.ToClient }) })
	both.Wait()
}

var errCut = errors.New("cut by the proxy")

// pass copies one direction until it ends, and hands the end on. A cut closes
// both ends.
func (p *TCP) pass(dst, src net.Conn, direction func(Faults) Flow) {
	g := &gate{proxy: p, direction: direction}
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		switch sendErr := g.send(dst, buf[:n]); {
		case errors.Is(sendErr, errCut):
			_ = dst.Close()
			_ = src.Close()
			return
		case sendErr != nil:
			_ = src.Close()
			return
		}
		if err == nil {
			continue
		}
		if half, ok := dst.(*net.TCPConn); ok && errors.Is(err, io.EOF) {
			_ = half.CloseWrite()
			return
		}
		_ = dst.Close()
		return
	}
}

// send writes as much of b as may pass, at the pace at which it may.
func (g *gate) send(dst net.Conn, b []byte) error {
	for len(b) > 0 {
		allowed, gateErr := g.next(len(b))
		if allowed > 0 {
			if _, err := dst.Write(b[:allowed]); err != nil {
				return err
			}
			b = b[allowed:]
		}
		if gateErr != nil {
			return gateErr
		}
	}
	return nil
}

// gate decides how much of one direction may pass now.
type gate struct {
	proxy     *TCP
	direction func(Faults) Flow
	since     <-chan struct{} // tells a Set apart from the last one
	passed    int64
}

// next returns how many of the n bytes at hand may pass, after waiting as the
// faults want it.
func (g *gate) next(n int) (int, error) {
	faults, changed := g.proxy.now()
	if changed != g.since {
		g.since, g.passed = changed, 0
	}
	flow := g.direction(faults)
	if room, limited := left(flow.CutAfter, g.passed); limited {
		if room == 0 {
			return 0, errCut
		}
		n = min(n, room)
	}
	if room, limited := left(flow.StallAfter, g.passed); limited {
		if room == 0 {
			return 0, g.wait(nil)
		}
		n = min(n, room)
	}
	if flow.Rate > 0 {
		n = int(min(int64(n), max(flow.Rate/20, 1)))
		flow.Delay += time.Duration(n) * time.Second / time.Duration(flow.Rate)
	}
	if flow.Delay > 0 {
		if err := g.wait(time.After(flow.Delay)); err != nil {
			return 0, err
		}
	}
	g.passed += int64(n)
	return n, nil
}

// wait returns when time is up or the faults change, with an error when the
// proxy ends.
func (g *gate) wait(timeUp <-chan time.Time) error {
	select {
	case <-timeUp:
	case <-g.since:
	case <-g.proxy.ctx.Done():
		return errCut
	}
	return nil
}

// left returns how many bytes may pass before the fault strikes.
func left(after, passed int64) (room int, limited bool) {
	switch after {
	case 0:
		return 0, false
	case AtOnce:
		return 0, true
	default:
		return int(max(after-passed, 0)), true
	}
}
