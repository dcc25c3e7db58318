package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/regular"
)

// probeTimeout bounds the look at one endpoint: all are looked at side by side.
const probeTimeout = time.Second

// Diagnose returns err in the operator's words: the cause that the client
// library hides behind "deadline exceeded", found by connecting to the
// endpoints once more, with the likely flag as a hint. An error that no
// connection caused is returned as it is, with a hint where one is known.
func Diagnose(ctx context.Context, c Config, err error) error {
	switch {
	case err == nil, ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return err
	case hintFor(err) != "":
		return hint.With(err, "%s", hintFor(err))
	case !couldBeConnection(err):
		return err
	}
	// The caller's deadline may be what ended the request, so probing has its own.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*probeTimeout)
	defer cancel()
	causes := c.probeAll(ctx)
	for i, cause := range causes {
		if cause == nil && strings.Contains(err.Error(), http1Answer) {
			return hint.With(fmt.Errorf("%s: the server there speaks HTTP/1.1, not etcd's protocol", c.Endpoints[i]),
				"name the client port, usually 2379, not that of peers (2380) or of metrics (2381)")
		}
		if cause == nil {
			// This endpoint can be reached, so the cluster is what does not answer.
			return hint.With(fmt.Errorf("%s: %w", c.Endpoints[i], shorten(err)),
				"the server accepts connections but does not answer: see whether the cluster has a leader with \"etcdkit health\", or raise --command-timeout")
		}
	}
	if len(causes) == 0 {
		return err
	}
	return &UnreachableError{errors.Join(causes...)}
}

// http1Answer is in grpc's error where a server answered in HTTP/1.1.
const http1Answer = "looked like an HTTP/1.1 header"

// UnreachableError says why not one of the endpoints can be talked to.
type UnreachableError struct{ Cause error }

func (e *UnreachableError) Error() string { return e.Cause.Error() }

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Cause }

// hintFor knows what to do about errors that a server answered with.
func hintFor(err error) string {
	switch {
	case errors.Is(err, rpctypes.ErrAuthFailed), matches(err, rpctypes.ErrAuthFailed):
		return "check --user and --password"
	case matches(err, rpctypes.ErrUserEmpty):
		return "authentication is on: give --user and a password, or a client certificate whose common name is a user"
	case matches(err, rpctypes.ErrPermissionDenied):
		return "the user lacks a role for this key or request: see \"user get\" and \"role get\""
	case matches(err, rpctypes.ErrInvalidAuthToken):
		return "the token is not valid (any more): log in again"
	case matches(err, rpctypes.ErrAuthNotEnabled):
		return "authentication is off in this cluster: leave out --user and --password"
	case matches(err, rpctypes.ErrNoSpace):
		return "the NOSPACE alarm is armed: \"etcdkit alarm recover\" frees space and disarms it"
	case matches(err, rpctypes.ErrCorrupt):
		return "the CORRUPT alarm is armed: \"etcdkit health\" says for which member, and what to do"
	case matches(err, rpctypes.ErrNoLeader):
		return "the cluster has no leader, so it has lost quorum: see \"etcdkit health\""
	}
	return memberHint(err)
}

// memberHint knows what to do where a change of members is not accepted.
func memberHint(err error) string {
	switch {
	case matches(err, rpctypes.ErrMemberExist), matches(err, rpctypes.ErrPeerURLExist):
		return "\"etcdkit member list\" shows who has this peer URL; one that was never started is taken out by: etcdkit member remove URL"
	case matches(err, rpctypes.ErrMemberLearnerNotReady):
		return "\"etcdkit member promote --wait\" waits until it has been started and has caught up"
	case matches(err, rpctypes.ErrTooManyLearners):
		return "promote or remove the learner that there is first: see \"etcdkit member list\""
	}
	return ""
}

func matches(err, want error) bool {
	return errors.Is(err, want) || rpctypes.ErrorDesc(err) == rpctypes.ErrorDesc(want)
}

// couldBeConnection reports whether err is one that a failing connection ends in.
func couldBeConnection(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	if _, ok := errors.AsType[*NoConnectionError](err); ok {
		return true
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded:
		return true
	}
	return false
}

// shorten strips what grpc wraps around a message.
func shorten(err error) error {
	if s, ok := status.FromError(err); ok {
		return errors.New(s.Message())
	}
	return err
}

// probeAll looks at every endpoint at once and returns the causes in order,
// nil for one that can be talked to.
func (c Config) probeAll(ctx context.Context) []error {
	causes := make([]error, len(c.Endpoints))
	var g errgroup.Group
	for i, ep := range c.Endpoints {
		g.Go(func() error {
			if err := c.probe(ctx, ep); err != nil {
				causes[i] = fmt.Errorf("%s: %w", ep, err)
			}
			return nil
		})
	}
	_ = g.Wait()
	return causes
}

// probe connects to one endpoint as the client would, up to a finished TLS
// handshake or the first bytes of the answer.
func (c Config) probe(ctx context.Context, endpoint string) error {
	addr, secure, err := c.address(endpoint)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if !secure {
		return c.withConn(ctx, addr, probePlain)
	}
	err = c.withConn(ctx, addr, func(conn net.Conn) error { return c.probeTLS(ctx, conn, addr) })
	if errors.Is(err, io.EOF) && c.withConn(ctx, addr, probePlain) == nil {
		return plainServer() // it hung up on the handshake, but answers without
	}
	return err
}

// withConn connects to addr and talks until ctx ends.
func (c Config) withConn(ctx context.Context, addr string, talk func(net.Conn) error) error {
	conn, err := c.DialContext(ctx, "tcp", addr)
	if err != nil {
		return explainDial(err)
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	return talk(conn)
}

func plainServer() error {
	return hint.With(errors.New("the server does not speak TLS on this port"), "use http:// in --endpoints, without --cacert, --cert and --key")
}

// explainDial words a failed TCP connection.
func explainDial(err error) error {
	var dns *net.DNSError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return hint.With(errors.New("connection refused"), "nothing listens there: is etcd running, and is --endpoints right?")
	case errors.As(err, &dns):
		return hint.With(fmt.Errorf("host %s not found", dns.Name), "check the host name in --endpoints")
	case errors.Is(err, context.DeadlineExceeded), os.IsTimeout(err):
		return hint.With(errors.New("no answer to the connection request"), "is the host up, and does a firewall drop the port?")
	}
	return err
}

// probeTLS makes the handshake and waits a moment for a refusal: with TLS 1.3
// a server rejects a missing client certificate only after the client is done.
func (c Config) probeTLS(ctx context.Context, conn net.Conn, addr string) error {
	cfg, err := c.Client()
	if err != nil {
		return c.explainFiles(err)
	}
	tlsCfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if cfg.TLS != nil {
		tlsCfg = cfg.TLS.Clone()
	}
	if tlsCfg.ServerName == "" {
		tlsCfg.ServerName, _, _ = net.SplitHostPort(addr)
	}
	tlsCfg.NextProtos = []string{"h2"}
	tc := tls.Client(conn, tlsCfg)
	if err := tc.HandshakeContext(ctx); err != nil {
		return c.explainTLS(err)
	}
	if err := tc.SetReadDeadline(time.Now().Add(probeTimeout / 4)); err != nil {
		return err
	}
	if _, err := tc.Read(make([]byte, 1)); err != nil && !os.IsTimeout(err) && !errors.Is(err, io.EOF) {
		return c.explainTLS(err)
	}
	return nil
}

// explainTLS words a failed handshake.
func (c Config) explainTLS(err error) error {
	var (
		unknown x509.UnknownAuthorityError
		host    x509.HostnameError
		invalid x509.CertificateInvalidError
		record  tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &record):
		return plainServer()
	case errors.As(err, &unknown) && c.emptyCA():
		return hint.With(fmt.Errorf("--cacert %s holds no certificate", c.TLS.CACert), "a CA file is PEM, with BEGIN CERTIFICATE in it")
	case errors.As(err, &unknown):
		return hint.With(fmt.Errorf("the server's certificate is not trusted: %w", unknown), "%s", c.caHint())
	case errors.As(err, &host):
		return hint.With(fmt.Errorf("the server's certificate is for another name: %w", host), "use a name or address of the certificate in --endpoints")
	case errors.As(err, &invalid):
		return hint.With(fmt.Errorf("the server's certificate is not valid: %w", invalid), "if it has expired, renew it on the server; else check this machine's clock")
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "certificate required"), strings.Contains(text, "bad certificate") && c.TLS.Cert == "":
		return hint.With(errors.New("the server wants a client certificate"), "give --cert and --key")
	case strings.Contains(text, "bad certificate"), strings.Contains(text, "unknown certificate authority"),
		strings.Contains(text, "expired certificate"), strings.Contains(text, "unknown certificate"):
		return hint.With(fmt.Errorf("the server refuses the client certificate: %w", err), "check --cert and --key: signed by the server's --trusted-ca-file, and not expired?")
	}
	return fmt.Errorf("tls handshake: %w", err)
}

// maxCAFile bounds what is read as authorities.
const maxCAFile = 16 << 20

// emptyCA reports whether the CA file has nothing that the client could trust,
// which it accepts without a word.
func (c Config) emptyCA() bool {
	if c.TLS.CACert == "" {
		return false
	}
	b, err := regular.ReadFile(c.TLS.CACert, maxCAFile)
	return err == nil && !x509.NewCertPool().AppendCertsFromPEM(b)
}

func (c Config) caHint() string {
	if c.TLS.CACert == "" {
		return "give the CA that signed it with --cacert"
	}
	return "--cacert " + c.TLS.CACert + " is not the CA that signed it"
}

// CheckFiles fails where a certificate file cannot be read or used.
func (c Config) CheckFiles() error {
	if _, err := c.Client(); err != nil {
		return c.explainFiles(err)
	}
	return nil
}

// readable fails where a certificate file cannot be read.
func (c Config) readable() error {
	for _, f := range []struct{ flag, path string }{{"--cacert", c.TLS.CACert}, {"--cert", c.TLS.Cert}, {"--key", c.TLS.Key}} {
		if f.path == "" {
			continue
		}
		file, openErr := os.Open(f.path)
		if openErr != nil {
			return hint.With(fmt.Errorf("%s: %w", f.flag, openErr), "check the path and the permissions of %s", f.flag)
		}
		file.Close()
	}
	return nil
}

// explainFiles words certificate files that cannot be used.
func (c Config) explainFiles(err error) error {
	if err := c.readable(); err != nil {
		return err
	}
	if (c.TLS.Cert == "") != (c.TLS.Key == "") {
		return hint.With(err, "--cert and --key go together")
	}
	return hint.With(fmt.Errorf("tls files: %w", err), "check that --cacert, --cert and --key are PEM files that belong together")
}

// probePlain asks without TLS. An etcd that expects TLS answers such a request
// in plain words or with a TLS alert, or hangs up.
func probePlain(conn net.Conn) error {
	if _, err := io.WriteString(conn, "GET /health HTTP/1.0\r\n\r\n"); err != nil {
		return err
	}
	answer := make([]byte, 256)
	n, err := conn.Read(answer)
	if err != nil && n == 0 {
		if os.IsTimeout(err) {
			return hint.With(errors.New("the port accepts connections but nothing answers"), "the server hangs, is stopped, or this is not etcd's client port")
		}
		return hint.With(errors.New("the server closed the connection"), "if it speaks TLS, use https:// in --endpoints and give --cacert")
	}
	const alert = 0x15
	if answer[0] == alert || strings.Contains(string(answer[:n]), "HTTPS") {
		return hint.With(errors.New("the server speaks TLS"), "use https:// in --endpoints and give --cacert (and --cert, --key)")
	}
	return nil
}
