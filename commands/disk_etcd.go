package commands

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/disk"
)

// metricsTimeout bounds one attempt to read a local etcd's /metrics.
const metricsTimeout = 2 * time.Second

// readNeighbours adds what the running etcds have measured themselves to a
// report. That they cannot be asked is worth a note, not a failure.
func readNeighbours(ctx context.Context, a *app.App, r *disk.Report) {
	if len(r.Neighbours) == 0 {
		return
	}
	client, guesses := metricsClient(a)
	defer client.CloseIdleConnections()
	if len(r.Neighbours) > 1 {
		guesses = nil // whose numbers they are would be a guess too
	}
	for i := range r.Neighbours {
		n := &r.Neighbours[i]
		why := errors.New("it does not say where it listens")
		for _, at := range append(metricsURLs(*n), guesses...) {
			m, err := getMetrics(ctx, client, at)
			if err == nil {
				n.Metrics = m
				break
			}
			why = err
		}
		if n.Metrics == nil && ctx.Err() == nil {
			a.Note("no measurements of its own from etcd (%s): %v", n, why)
		}
	}
}

// metricsClient returns a client with the connection's certificates, and where
// an etcd that does not say so on its command line is likely to be.
func metricsClient(a *app.App) (*http.Client, []string) {
	transport := &http.Transport{DisableKeepAlives: true, Proxy: nil}
	guesses := []string{"http://127.0.0.1:2381"} // kubeadm's
	conn, err := a.Connection()
	if err == nil {
		guesses = append(guesses, conn.Endpoints...)
		if cfg, err := conn.Client(); err == nil {
			transport.TLSClientConfig = cfg.TLS
		}
	}
	noRedirects := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: transport, Timeout: metricsTimeout, CheckRedirect: noRedirects}, guesses
}

// metricsURLs returns where an etcd says that it listens, its metrics address first.
func metricsURLs(n disk.Neighbour) []string {
	var all []string
	for _, name := range []string{"listen-metrics-urls", "listen-client-urls"} {
		for at := range strings.SplitSeq(n.Flag(name), ",") {
			if at != "" {
				all = append(all, at)
			}
		}
	}
	return all
}

func getMetrics(ctx context.Context, client *http.Client, endpoint string) (*disk.EtcdMetrics, error) {
	if !strings.Contains(endpoint, "://") {
		endpoint = "http://" + endpoint
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(u.Hostname()); ip != nil && ip.IsUnspecified() {
		u.Host = net.JoinHostPort("127.0.0.1", u.Port())
	}
	page := (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/metrics"}).String()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", page, resp.Status)
	}
	m, err := disk.ReadMetrics(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", page, err)
	}
	m.URL = page
	return m, nil
}
