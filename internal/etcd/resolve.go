package etcd

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/etcdkit/etcdkit/internal/hint"
)

// Resolve sends connections for some addresses elsewhere, as curl's --resolve
// does: a member behind a tunnel is reached at the tunnel's end, and its
// certificate is still checked for the host that the endpoint names.
type Resolve map[string]string

// ParseResolve reads entries of the form HOST:PORT=ADDRESS:PORT.
func ParseResolve(entries []string) (Resolve, error) {
	all := Resolve{}
	for _, entry := range entries {
		from, to, _ := strings.Cut(strings.TrimSpace(entry), "=")
		for _, part := range []string{from, to} {
			if host, port, err := net.SplitHostPort(part); err != nil || host == "" || port == "" {
				return nil, hint.With(fmt.Errorf("invalid --resolve %q", entry), "want HOST:PORT=ADDRESS:PORT, such as 10.0.0.1:2379=127.0.0.1:12379")
			}
		}
		from = strings.ToLower(from)
		if other, ok := all[from]; ok && other != to {
			return nil, fmt.Errorf("--resolve names two addresses for %s", from)
		}
		all[from] = to
	}
	return all, nil
}

// DialContext connects to addr, or to where Resolve sends it. It is the one
// place that opens a connection to a member.
func (c Config) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	if to, ok := c.Resolve[strings.ToLower(addr)]; ok {
		addr = to
	}
	return new(net.Dialer).DialContext(ctx, network, addr)
}

// dialTarget is DialContext for grpc, which names a socket in the file system
// by a scheme.
func (c Config) dialTarget(ctx context.Context, target string) (net.Conn, error) {
	if path, ok := strings.CutPrefix(target, "unix:"); ok {
		return c.DialContext(ctx, "unix", strings.TrimPrefix(path, "//"))
	}
	return c.DialContext(ctx, "tcp", target)
}
