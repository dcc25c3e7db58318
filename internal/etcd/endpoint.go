package etcd

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/etcdkit/etcdkit/internal/hint"
)

const endpointForm = "an endpoint is host:port or https://host:port"

// CheckEndpoints fails where an endpoint is none, before anything is sent, in
// words that show no password.
func (c Config) CheckEndpoints() error {
	if len(c.Endpoints) == 0 {
		return hint.With(errors.New("no endpoint given"), endpointForm+": set --endpoints")
	}
	for _, ep := range c.Endpoints {
		if err := checkEndpoint(ep); err != nil {
			return err
		}
	}
	return nil
}

func checkEndpoint(endpoint string) error {
	scheme, host := "", endpoint
	if s, rest, ok := strings.Cut(endpoint, "://"); ok {
		scheme, host = strings.ToLower(s), rest
	}
	switch {
	case isSocket(endpoint):
		return nil
	case strings.Contains(host, "@"):
		return hint.With(errors.New("an endpoint has a user's name in it, which etcd takes elsewhere"), "give --user, and a password with --password-file")
	case scheme != "" && scheme != "http" && scheme != "https":
		return hint.With(fmt.Errorf("endpoint %q: %s is none of http, https, unix and unixs", endpoint, scheme), endpointForm)
	}
	host, _, _ = strings.Cut(host, "/")
	if _, port, err := net.SplitHostPort(host); err != nil || port == "" {
		return hint.With(fmt.Errorf("malformed endpoint %q", endpoint), endpointForm)
	}
	return nil
}

// isSocket reports whether the endpoint is a socket in the file system.
func isSocket(endpoint string) bool {
	return strings.HasPrefix(endpoint, "unix:") || strings.HasPrefix(endpoint, "unixs:")
}

// Shown are endpoints as others may read them: without what CheckEndpoints
// refuses, a user's name and password.
func Shown(endpoints []string) []string {
	shown := make([]string, len(endpoints))
	for i, ep := range endpoints {
		shown[i] = ep
		if at := strings.LastIndex(ep, "@"); at >= 0 && !isSocket(strings.TrimPrefix(ep, "[")) { // as flags show lists
			shown[i] = ep[at+1:]
		}
	}
	return shown
}

// address returns where endpoint listens and whether the client would use TLS.
func (c Config) address(endpoint string) (addr string, secure bool, err error) {
	certs := c.TLS.Cert != "" || c.TLS.CACert != ""
	if !strings.Contains(endpoint, "://") {
		return endpoint, certs, nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" {
		return "", false, hint.With(fmt.Errorf("malformed endpoint %q", endpoint), endpointForm)
	}
	if u.Scheme == "unix" || u.Scheme == "unixs" {
		return "", false, fmt.Errorf("no answer on the socket %s", u.Path)
	}
	return u.Host, u.Scheme == "https", nil
}

// HostPort is an endpoint without its scheme and what follows the port, in lower
// case: two endpoints with the same one are the same listener.
func HostPort(endpoint string) string {
	if _, rest, ok := strings.Cut(endpoint, "://"); ok && !isSocket(endpoint) {
		endpoint, _, _ = strings.Cut(rest, "/")
	}
	return strings.ToLower(strings.TrimSuffix(endpoint, "/"))
}
