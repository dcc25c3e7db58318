package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/etcdkit/etcdkit/internal/regular"
)

// errStalled is the cause of a request that was given up because no byte moved.
var errStalled = errors.New("the connection stalled")

const (
	dialTimeout     = 10 * time.Second
	metadataTimeout = 15 * time.Second // a token service may be far
	ownDialTimeout  = 2 * time.Second  // the machine's own metadata service answers at once or is not there
	socketBuffer    = 128 << 10
	// completePatience multiplies the stall timeout where a store joins parts: it
	// may say nothing for minutes.
	completePatience = 10
)

// transport is an HTTP transport that gives a request up when no byte moves
// for a while, in whichever direction, but never because it takes long.
type transport struct {
	next  *http.Transport
	idle  time.Duration
	clock clock
}

func newTransport(opts S3Options) (*transport, error) {
	proxy, err := opts.proxy()
	if err != nil {
		return nil, err
	}
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: opts.InsecureSkipVerify} // only when asked for by name
	if opts.CAFile != "" {
		if tlsConfig.RootCAs, err = readCA(opts.CAFile); err != nil {
			return nil, err
		}
	}
	return &transport{idle: opts.StallTimeout, next: &http.Transport{
		Proxy:               proxy,
		DialContext:         (&net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}).DialContext,
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: dialTimeout,
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     30 * time.Second,
		WriteBufferSize:     socketBuffer,
		ReadBufferSize:      socketBuffer,
		// A store that compresses on the way makes lengths meaningless.
		DisableCompression:     true,
		OnProxyConnectResponse: proxyRefuses,
	}}, nil
}

func (o S3Options) proxy() (func(*http.Request) (*url.URL, error), error) {
	switch o.Proxy {
	case "":
		return environmentProxy, nil
	case "none":
		return nil, nil
	}
	u, err := url.Parse(o.Proxy)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("%w: the S3 proxy is not a URL", ErrConfig)
	}
	return http.ProxyURL(u), nil
}

// environmentProxy is the proxy that the environment names. Its errors quote
// that, and it may hold a password.
func environmentProxy(req *http.Request) (*url.URL, error) {
	u, err := http.ProxyFromEnvironment(req)
	if err != nil {
		return nil, fmt.Errorf("%w: the proxy in the environment is not a URL", ErrConfig)
	}
	return u, nil
}

// ErrProxy tells that the proxy, and not the store, is what refuses.
var ErrProxy = errors.New("the proxy refuses to connect")

// errProxyFails is a proxy that cannot connect now.
var errProxyFails = errors.New("the proxy cannot connect")

// proxyRefuses returns an error for a proxy that did not open the connection. A
// status of 500 or more is transient.
func proxyRefuses(_ context.Context, proxy *url.URL, req *http.Request, resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	kind := ErrProxy
	if resp.StatusCode >= http.StatusInternalServerError {
		kind = errProxyFails
	}
	return fmt.Errorf("%w: %s answers %s to the wish for %s", kind, proxy.Host, resp.Status, req.Host)
}

func readCA(name string) (*x509.CertPool, error) {
	pem, err := regular.ReadFile(name, maxCAFile)
	if err != nil {
		return nil, fmt.Errorf("%w: read CA file: %w", ErrConfig, err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%w: %s holds no PEM certificate", ErrConfig, name)
	}
	return pool, nil
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	idle := t.idle
	if req.Method == http.MethodPost {
		idle *= completePatience
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	w := &watch{idle: idle, cancel: cancel}
	w.timer = time.AfterFunc(idle, func() { cancel(errStalled) })
	req = req.WithContext(ctx)
	if req.Body != nil && req.Body != http.NoBody {
		body := &sending{ReadCloser: req.Body, watch: w}
		defer body.end()
		req.Body = body
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		w.stop()
		return nil, stalledOr(ctx, err)
	}
	w.timer.Stop()
	resp.Body = &receiving{ReadCloser: resp.Body, watch: w, ctx: ctx}
	t.clock.set(resp.Header.Get("Date"))
	if err := checkAnswer(req, resp); err != nil {
		return nil, errors.Join(err, resp.Body.Close())
	}
	return resp, nil
}

// stalledOr tells a request that was given up here from one that failed.
func stalledOr(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errStalled) {
		return cause
	}
	return err
}

// watch ends a request when nothing moved for idle.
type watch struct {
	timer  *time.Timer
	idle   time.Duration
	cancel context.CancelCauseFunc
}

func (w *watch) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

// sending is a request body: between two reads the network takes the bytes, so
// the watch runs all the time. If the answer comes early, the transport goes on
// reading the body after the request has returned, while the caller refills the
// buffer behind it. After end, Read fails.
type sending struct {
	io.ReadCloser
	watch *watch

	mu    sync.Mutex
	ended bool
}

// errAnswered ends the reading of a body that was answered before its end.
var errAnswered = errors.New("the request has been answered")

func (s *sending) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return 0, errAnswered
	}
	s.watch.timer.Reset(s.watch.idle)
	return s.ReadCloser.Read(p)
}

func (s *sending) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}

// receiving is a response body: between two reads the caller works on what it
// got, so the watch runs only while reading.
type receiving struct {
	io.ReadCloser
	watch *watch
	ctx   context.Context // belongs to the one request
}

func (r *receiving) Read(p []byte) (int, error) {
	r.watch.timer.Reset(r.watch.idle)
	n, err := r.ReadCloser.Read(p)
	r.watch.timer.Stop()
	if err != nil && err != io.EOF { //nolint:errorlint // the bare EOF is the end
		err = stalledOr(r.ctx, err)
	}
	return n, err
}

func (r *receiving) Close() error {
	err := r.ReadCloser.Close()
	r.watch.stop()
	return err
}
