package commands_test

import (
	"context"
	"net"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

// Endpoints are found by the SRV records of a domain, under either name.
func TestSRVDiscovery(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, embedded.Options{})
	u, err := url.Parse(c.Endpoints()[0])
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	serveDNS(t, map[string]uint16{
		"_etcd-client._tcp.plain.test.":      uint16(port),
		"_etcd-client-lab._tcp.named.test.":  uint16(port),
		"_etcd-client-ssl._tcp.secure.test.": 1,
	})
	for name, tc := range map[string]struct {
		flags []string
		code  int
		want  string
	}{
		"records of the domain":          {[]string{"-d", "plain.test"}, 0, ""},
		"records of a named service":     {[]string{"--discovery-srv", "named.test", "--discovery-srv-name", "lab"}, 0, ""},
		"they replace --endpoints":       {[]string{"-d", "plain.test", "--endpoints=127.0.0.1:1"}, 0, ""},
		"plain ones, where not accepted": {[]string{"-d", "plain.test", "--insecure-discovery=false", "--endpoints=127.0.0.1:1", "--command-timeout=300ms"}, 1, "insecure"},
		"a domain without records":       {[]string{"-d", "empty.test"}, 1, "empty.test"},
		"a secure one that is dead":      {[]string{"-d", "secure.test", "--command-timeout=300ms"}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, program := range []string{"etcdkit", "etcdctl"} {
				code, _, stderr := run(t, append([]string{program, "get", "a"}, tc.flags...)...)
				want := tc.want
				if want == "insecure" && program == "etcdkit" {
					want = "--insecure-discovery accepts plain ones"
				} else if want == "insecure" {
					want = "ignoring discovered insecure endpoint"
				}
				if code != tc.code || !strings.Contains(stderr, want) {
					t.Errorf("%s: exit code %d and %q; want %d and %q", program, code, stderr, tc.code, want)
				}
			}
		})
	}
}

// serveDNS answers this process's questions for SRV records, all on loopback.
func serveDNS(t *testing.T, records map[string]uint16) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	old := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	done := make(chan struct{})
	t.Cleanup(func() { net.DefaultResolver = old; _ = conn.Close(); <-done })
	go func() {
		defer close(done)
		packet := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(packet)
			if err != nil {
				return
			}
			if reply, err := answer(packet[:n], records); err == nil {
				_, _ = conn.WriteTo(reply, from)
			}
		}
	}()
}

func answer(question []byte, records map[string]uint16) ([]byte, error) {
	var msg dnsmessage.Message
	if err := msg.Unpack(question); err != nil {
		return nil, err
	}
	msg.Response, msg.Additionals = true, nil
	q := msg.Questions[0]
	port, known := records[q.Name.String()]
	switch {
	case q.Type == dnsmessage.TypeSRV && known:
		msg.Answers = append(msg.Answers, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
			Body:   &dnsmessage.SRVResource{Target: dnsmessage.MustNewName("localhost."), Port: port},
		})
	case q.Type == dnsmessage.TypeA:
		msg.Answers = append(msg.Answers, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
			Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
		})
	case q.Type == dnsmessage.TypeAAAA:
	default:
		msg.RCode = dnsmessage.RCodeNameError
	}
	return msg.Pack()
}
