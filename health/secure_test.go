package health_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/health"
	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/etcd"
	"github.com/etcdkit/etcdkit/internal/testing/certs"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

// secureDoors connect with the authority's client certificate.
func secureDoors(t *testing.T, ca *certs.CA, pair certs.Pair) health.Doors {
	t.Helper()
	cfg := ca.ClientConfig(t, pair)
	return health.Doors{
		Dial: func(ctx context.Context, endpoint string) (health.Client, error) {
			return etcd.Dial(ctx, etcd.Config{
				Endpoints: []string{endpoint}, DialTimeout: time.Minute, FailFast: true,
				TLS: etcd.TLS{CACert: ca.File, Cert: pair.CertFile, Key: pair.KeyFile},
			})
		},
		Scrape:    health.Scraper(&http.Client{Transport: &http.Transport{TLSClientConfig: cfg}}, nil),
		Handshake: health.Handshaker(cfg, new(net.Dialer).DialContext),
	}
}

func TestCheckOverTLSSeesCertificatesAndMetrics(t *testing.T) {
	t.Parallel()
	ca := certs.NewCA(t)
	cluster := etcdtest.Start(t, embedded.Options{Configure: etcdtest.TLS(t, ca, true)})
	d := secureDoors(t, ca, ca.Client(t, "root"))
	opts := health.Options{Timeout: time.Minute, Sample: time.Millisecond, Limits: lenient(), Require: []health.Kind{health.KindMetrics, health.KindCerts}}
	opts.Limits.CertExpiry = time.Millisecond
	got, err := health.Check(t.Context(), d, cluster.Endpoints(), opts)
	// Embedded members share this process's metrics, so that elections in other
	// tests may make it degraded; nothing is missing all the same.
	if err != nil || got.Members[0].Metrics == nil || len(got.Gaps) > 0 {
		t.Fatalf("%s, %v; want all evidence: %+v %+v", got.Verdict, err, got.Problems, got.Gaps)
	}
	var uses []string
	for _, c := range got.Members[0].Certs {
		uses = append(uses, c.Use)
	}
	slices.Sort(uses)
	if want := []string{"client", "server"}; !slices.Equal(uses, want) {
		t.Errorf("certificates in use %v, want %v", uses, want)
	}
	// The same certificates are a problem to whoever wants ten more years of them.
	opts.Limits.CertExpiry = 100 * 365 * 24 * time.Hour
	got, err = health.Check(t.Context(), d, cluster.Endpoints(), opts)
	if err != nil || got.Verdict != health.Degraded || !slices.ContainsFunc(got.Problems, func(p health.Problem) bool { return p.Check == health.KindCerts }) {
		t.Errorf("%s, %v; want degraded for a certificate that ends soon: %+v", got.Verdict, err, got.Problems)
	}
}

// With authentication on, a user without rights to a key still shows that the
// cluster serves; without a user there is no verdict.
func TestCheckWithAuthenticationOn(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, embedded.Options{})
	client := etcdtest.Client(t, cluster.Endpoints()...)
	etcdtest.EnableAuth(t, client, "root-password", etcdtest.User{Name: "reader", Password: "reader-password", Prefix: "reader/"})
	as := func(user, password string) health.Doors {
		return health.Doors{Dial: func(ctx context.Context, endpoint string) (health.Client, error) {
			return etcd.Dial(ctx, etcd.Config{
				Endpoints: []string{endpoint}, DialTimeout: time.Minute, FailFast: true,
				Auth: etcd.Auth{User: user, Password: password},
			})
		}}
	}
	opts := health.Options{Limits: lenient()}
	for _, user := range []string{"root", "reader"} {
		healthy(t, as(user, user+"-password"), cluster.Endpoints(), opts)
	}
	got, err := health.Check(t.Context(), as("", ""), cluster.Endpoints(), opts)
	if !errors.Is(err, health.ErrUnknown) || !got.Members[0].Reachable {
		t.Errorf("as nobody: %s, %v, reachable %v; want unknown of a member that answers", got.Verdict, err, got.Members[0].Reachable)
	}
	got, err = health.Check(t.Context(), as("root", "wrong"), cluster.Endpoints(), opts)
	if !errors.Is(err, health.ErrUnknown) {
		t.Errorf("with a wrong password: %s, %v; want unknown", got.Verdict, err)
	}
}
