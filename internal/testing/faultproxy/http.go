package faultproxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/testing/certs"
)

// Rule breaks the requests that it matches. Of several rules the first that
// matches and has not run out counts.
type Rule struct {
	Method string // "" means all
	Path   string // the path or query holds this; "" means all
	Skip   int    // so many matching requests pass first
	Times  int    // how many to break; 0 means all

	// What happens: one of these, after the delay.
	Delay    time.Duration
	Status   int    // answer with this code, without asking the server
	Code     string // the S3 error code that goes with it; "" means a usual one
	Page     string // answer with this HTML page instead of S3's XML
	CutBody  int64  // cut the connection after so many bytes of the answer; AtOnce for none
	CutSend  int64  // cut the connection after so many bytes of the request
	Stall    bool   // never answer
	NoHeader string // leave this header out of the request
}

// Request is one request as the proxy saw it.
type Request struct {
	Method string
	URL    *url.URL
	Header http.Header
	Status int // of the answer, 0 if it was cut or stalled
}

// HTTP is a proxy in front of an S3 server that ends with the test. The
// request's Host header is passed on, for it is part of S3's signature.
type HTTP struct {
	URL string

	ctx context.Context // ends with the proxy

	mu       sync.Mutex
	rules    []*Rule
	requests []Request
}

// NewHTTP starts a proxy in front of the server at target, a URL.
func NewHTTP(t testing.TB, target string) *HTTP {
	t.Helper()
	return newHTTP(t, target, nil, (*httptest.Server).Start)
}

// NewHTTPS starts a proxy that speaks TLS with clients, by a certificate of
// ca. The server may speak TLS by one of ca too.
func NewHTTPS(t testing.TB, target string, ca *certs.CA) *HTTP {
	t.Helper()
	pair := ca.Server(t)
	cert, err := tls.LoadX509KeyPair(pair.CertFile, pair.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	return newHTTP(t, target, ca.ClientConfig(t), func(s *httptest.Server) {
		s.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
		s.StartTLS()
	})
}

func newHTTP(t testing.TB, target string, clientTLS *tls.Config, start func(*httptest.Server)) *HTTP {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &HTTP{ctx: ctx}
	transport := &http.Transport{TLSClientConfig: clientTLS, DisableCompression: true, DisableKeepAlives: true}
	forward := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host
		},
		// Whatever breaks on the way to the server breaks for the client.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.serve(w, r, forward)
	}))
	start(server)
	p.URL = server.URL
	t.Cleanup(func() {
		cancel()
		server.CloseClientConnections()
		server.Close()
		transport.CloseIdleConnections()
	})
	return p
}

// Add adds rules after those that there are.
func (p *HTTP) Add(rules ...Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range rules {
		p.rules = append(p.rules, &r)
	}
}

// Clear removes all rules.
func (p *HTTP) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = nil
}

// Requests returns all requests so far, in the order they came.
func (p *HTTP) Requests() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Request(nil), p.requests...)
}

// record keeps the request and returns the rule for it, and how to tell the
// answer's status later.
func (p *HTTP) record(r *http.Request) (rule Rule, answered func(status int)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, Request{Method: r.Method, URL: r.URL, Header: r.Header.Clone()})
	i := len(p.requests) - 1
	for _, candidate := range p.rules {
		if candidate.takes(r) {
			rule = *candidate
			break
		}
	}
	return rule, func(status int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.requests[i].Status = status
	}
}

// takes reports whether the rule breaks this request, and counts it.
func (r *Rule) takes(req *http.Request) bool {
	if r.Method != "" && r.Method != req.Method || !strings.Contains(req.URL.RequestURI(), r.Path) {
		return false
	}
	if r.Skip > 0 {
		r.Skip--
		return false
	}
	switch r.Times {
	case AtOnce: // ran out
		return false
	case 1:
		r.Times = AtOnce
	case 0:
	default:
		r.Times--
	}
	return true
}

func (p *HTTP) serve(w http.ResponseWriter, r *http.Request, forward http.Handler) {
	rule, answered := p.record(r)
	if rule.Stall || rule.Delay > 0 {
		p.wait(r, rule)
	}
	if rule.Status != 0 {
		// A client that is still sending would lose the answer to a reset.
		_, _ = io.Copy(io.Discard, r.Body)
		answered(rule.Status)
		refuse(w, rule)
		return
	}
	if rule.NoHeader != "" {
		r.Header.Del(rule.NoHeader)
	}
	if rule.CutSend != 0 {
		r.Body = &cutReader{ReadCloser: r.Body, left: max(rule.CutSend, 0)}
	}
	forward.ServeHTTP(&recorder{ResponseWriter: w, answered: answered, cut: rule.CutBody}, r)
}

// wait holds the request back for the rule's delay; a stalled one until its
// client or the test gives up.
func (p *HTTP) wait(r *http.Request, rule Rule) {
	var timeUp <-chan time.Time
	if !rule.Stall {
		timeUp = time.After(rule.Delay)
	}
	select {
	case <-timeUp:
	case <-r.Context().Done():
		panic(http.ErrAbortHandler)
	case <-p.ctx.Done():
		panic(http.ErrAbortHandler)
	}
}

// refuse answers as an S3 server that does not do what was asked.
func refuse(w http.ResponseWriter, rule Rule) {
	code := rule.Code
	if code == "" {
		switch rule.Status {
		case http.StatusForbidden:
			code = "AccessDenied"
		case http.StatusServiceUnavailable:
			code = "SlowDown"
		case http.StatusNotImplemented:
			code = "NotImplemented"
		default:
			code = "InternalError"
		}
	}
	if rule.Page != "" {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(rule.Status)
		_, _ = io.WriteString(w, rule.Page)
		return
	}
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(rule.Status)
	fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>fault of a test</Message></Error>`, code)
}

// recorder tells the answer's status, and cuts the answer where asked to.
type recorder struct {
	http.ResponseWriter
	answered func(int)
	cut      int64
	sent     int64
}

func (r *recorder) WriteHeader(status int) {
	r.answered(status)
	r.ResponseWriter.WriteHeader(status)
	if r.cut == AtOnce {
		r.abort()
	}
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.cut <= 0 || r.sent+int64(len(b)) < r.cut {
		r.sent += int64(len(b))
		return r.ResponseWriter.Write(b)
	}
	_, _ = r.ResponseWriter.Write(b[:r.cut-r.sent])
	r.abort()
	return 0, nil
}

// abort sends what is buffered and breaks the connection.
func (r *recorder) abort() {
	_ = http.NewResponseController(r.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

// Unwrap lets the reverse proxy flush.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

var errSendCut = errors.New("cut by the proxy while sending")

// cutReader is a request body that breaks off.
type cutReader struct {
	io.ReadCloser
	left int64
}

func (c *cutReader) Read(b []byte) (int, error) {
	if c.left == 0 {
		return 0, errSendCut
	}
	n, err := c.ReadCloser.Read(b[:min(int64(len(b)), c.left)])
	c.left -= int64(n)
	return n, err
}
