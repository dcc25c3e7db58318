package health_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/health"
	"github.com/etcdkit/etcdkit/internal/testing/certs"
)

// A member whose certificate has expired cannot be asked anything, and that is
// why: the certificate is looked at all the same.
func TestAnExpiredCertificateIsWhyAMemberDoesNotAnswer(t *testing.T) {
	t.Parallel()
	ca := certs.NewCA(t)
	expired := ca.Expired(t)
	pair, err := tls.LoadX509KeyPair(expired.CertFile, expired.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_ = conn.(*tls.Conn).HandshakeContext(context.WithoutCancel(t.Context()))
			}()
		}
	}()
	doors := health.Doors{
		Dial: func(context.Context, string) (health.Client, error) {
			return nil, errors.New("the certificate has expired")
		},
		Handshake: health.Handshaker(ca.ClientConfig(t), new(net.Dialer).DialContext),
	}
	dead := "https://127.0.0.1:1"
	got, _ := health.Check(t.Context(), doors, []string{"https://" + listener.Addr().String(), dead}, health.Options{Timeout: 30 * time.Second})
	critical := false
	for _, p := range got.Problems {
		critical = critical || p.Severity == health.Critical && p.Check == health.KindCerts && strings.Contains(p.Evidence, "expired on")
	}
	if !critical {
		t.Errorf("no critical problem with the certificate: %+v", got.Problems)
	}
	for _, g := range got.Gaps {
		if g.Check == health.KindCerts {
			t.Errorf("a member that is down is a gap that nobody asked for: %+v", g)
		}
	}
	got, _ = health.Check(t.Context(), doors, []string{dead}, health.Options{Require: []health.Kind{health.KindCerts}})
	required := false
	for _, g := range got.Gaps {
		required = required || g.Check == health.KindCerts && g.Required
	}
	if !required {
		t.Errorf("what --require certs asks for is no gap: %+v", got.Gaps)
	}
}
