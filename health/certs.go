package health

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Certificate is a certificate in use at a URL.
type Certificate struct {
	URL      string    `json:"url"`
	Use      string    `json:"use"` // server, peer, client
	Subject  string    `json:"subject"`
	NotAfter time.Time `json:"notAfter"`
	Issuer   string    `json:"issuer"`
}

// certClient is the use of a certificate that the caller itself shows.
const certClient = "client"

// handshakes returns the certificates of the member's client and peer URLs, and
// why some could not be seen.
func (p *probe) handshakes(ctx context.Context, doors Doors, opts Options) (certs []Certificate, failures []error) {
	urls := slices.DeleteFunc(slices.Concat([]string{p.Endpoint}, p.ClientURLs, p.PeerURLs), func(u string) bool {
		return !strings.HasPrefix(u, "https://")
	})
	slices.Sort(urls)
	urls = slices.Compact(urls)
	if len(urls) == 0 {
		return nil, nil // nothing is encrypted, so there is no certificate to expire
	}
	if doors.Handshake == nil {
		return nil, []error{errNotWanted}
	}
	found := make([][]Certificate, len(urls))
	errs := make([]error, len(urls))
	var wg sync.WaitGroup
	for i, u := range urls {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, opts.timeout())
			defer cancel()
			found[i], errs[i] = doors.Handshake(ctx, u)
		})
	}
	wg.Wait()
	for i, u := range urls {
		if errs[i] != nil {
			failures = append(failures, errs[i])
			continue
		}
		for _, c := range found[i] {
			if slices.Contains(p.PeerURLs, u) && c.Use == "server" {
				c.Use = "peer"
			}
			certs = append(certs, c)
		}
	}
	return certs, failures
}

// unreachableCerts looks at the certificates of a member that did not answer: an
// expired one may be why. What cannot be seen there is a gap only where it is
// required, since most members that do not answer are down.
func (p *probe) unreachableCerts(ctx context.Context, doors Doors, opts Options) {
	if doors.Handshake == nil || p.Error == NotAsked {
		return
	}
	opts.Timeout = min(opts.timeout(), unreachableTimeout)
	var failures []error
	p.Certs, failures = p.handshakes(ctx, doors, opts)
	if !slices.Contains(opts.Require, KindCerts) {
		return
	}
	for _, err := range failures {
		p.gap(KindCerts, "%v", err)
	}
}

// unreachableTimeout bounds a second look at what did not answer the first.
const unreachableTimeout = 2 * time.Second

// Handshaker returns a Doors.Handshake that connects by dial and with cfg. The
// server's chain is looked at, not trusted: an expired certificate must be
// seen, not refused.
func Handshaker(cfg *tls.Config, dial func(ctx context.Context, network, addr string) (net.Conn, error)) func(context.Context, string) ([]Certificate, error) {
	return func(ctx context.Context, target string) ([]Certificate, error) {
		u, err := url.Parse(target)
		if err != nil {
			return nil, fmt.Errorf("read certificate: %w", err)
		}
		var chain []*x509.Certificate
		conf := &tls.Config{MinVersion: tls.VersionTLS12}
		if cfg != nil {
			conf = cfg.Clone()
		}
		conf.InsecureSkipVerify = true
		conf.VerifyConnection = nil
		conf.VerifyPeerCertificate = func(raw [][]byte, _ [][]*x509.Certificate) error {
			chain, err = parseChain(raw)
			return err
		}
		if conf.ServerName == "" {
			conf.ServerName = u.Hostname()
		}
		conn, dialErr := dial(ctx, "tcp", u.Host)
		if dialErr == nil {
			dialErr = errors.Join(tls.Client(conn, conf).HandshakeContext(ctx), conn.Close())
		}
		// A server may refuse us after it showed its certificate, which is
		// what peer URLs do to a client's certificate.
		if len(chain) == 0 {
			return nil, fmt.Errorf("read certificate of %s: %w", target, dialErr)
		}
		return append(inUse(target, chain), own(target, conf)...), nil
	}
}

func parseChain(raw [][]byte) ([]*x509.Certificate, error) {
	var chain []*x509.Certificate
	for _, der := range raw {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("parse certificate: %w", err)
		}
		chain = append(chain, c)
	}
	return chain, nil
}

// inUse tells the server's own certificate. The chain is as good as the
// certificate in it that expires first.
func inUse(target string, chain []*x509.Certificate) []Certificate {
	c := certificate(target, "server", chain[0])
	for _, issuer := range chain[1:] {
		if issuer.NotAfter.Before(c.NotAfter) {
			c.NotAfter, c.Subject = issuer.NotAfter.UTC(), issuer.Subject.String()
		}
	}
	return []Certificate{c}
}

// own tells the certificates that the caller itself would show.
func own(target string, cfg *tls.Config) []Certificate {
	pairs := cfg.Certificates
	if cfg.GetClientCertificate != nil {
		if pair, err := cfg.GetClientCertificate(&tls.CertificateRequestInfo{}); err == nil && pair != nil {
			pairs = []tls.Certificate{*pair}
		}
	}
	var out []Certificate
	for _, pair := range pairs {
		if len(pair.Certificate) == 0 {
			continue
		}
		if c, err := x509.ParseCertificate(pair.Certificate[0]); err == nil {
			out = append(out, certificate(target, certClient, c))
		}
	}
	return out
}

func certificate(target, use string, c *x509.Certificate) Certificate {
	return Certificate{
		URL: target, Use: use, Subject: c.Subject.String(), Issuer: c.Issuer.String(), NotAfter: c.NotAfter.UTC(),
	}
}
