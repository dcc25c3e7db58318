//go:build !windows

package parity_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/etcdkit/etcdkit/internal/testing/certs"
	"github.com/etcdkit/etcdkit/internal/testing/parity"
)

// The flags that go with a server which asks for certificates. A stranger's
// certificate is vouched for by another authority.
const (
	trusted  = " --cacert=ca.pem --cert=client.pem --key=client-key.pem"
	stranger = " --cacert=ca.pem --cert=stranger.pem --key=stranger-key.pem"
	briefly  = " --command-timeout=1s"
)

// pems puts an authority and certificates of each kind into a folder.
func pems(ca, other *certs.CA) func(testing.TB, string) {
	return func(t testing.TB, dir string) {
		t.Helper()
		client, strange := ca.Client(t, "root"), other.Client(t, "root")
		for name, from := range map[string]string{
			"ca.pem": ca.File, "other-ca.pem": other.File,
			"client.pem": client.CertFile, "client-key.pem": client.KeyFile,
			"stranger.pem": strange.CertFile, "stranger-key.pem": strange.KeyFile,
		} {
			text, err := os.ReadFile(from)
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestEtcdctlCertificates(t *testing.T) {
	t.Parallel()
	var lines []parity.Line
	for _, cmd := range []string{"put a 1", "get a", "member list", "endpoint health", "endpoint status", "endpoint hashkv --cluster", "alarm list", "lease list", "user list", "defrag", "snapshot save s.db", "compaction 1"} {
		lines = append(lines, parity.L("etcdctl "+cmd+trusted))
	}
	ca := certs.NewCA(t)
	parity.Scenario{Members: 1, CA: ca, Prepare: pems(ca, certs.NewCA(t)), Lines: lines}.Run(t, programs(t), wanted())
}

func TestEtcdctlRightAndWrongCertificates(t *testing.T) {
	t.Parallel()
	var lines []parity.Line
	for _, flags := range []string{
		trusted + " --insecure-transport=false", trusted + " --insecure-skip-tls-verify", " --cert=client.pem --key=client-key.pem --insecure-skip-tls-verify",
		" --cert=client.pem --key=client-key.pem --insecure-transport=false --insecure-skip-tls-verify", trusted + " --endpoints={host1}", trusted + " --debug=false",
		" --cacert=ca.pem", " --cacert=other-ca.pem --cert=client.pem --key=client-key.pem", " --cert=client.pem --key=client-key.pem", " --insecure-skip-tls-verify", "", " --insecure-transport=false",
		stranger, stranger + " --insecure-skip-tls-verify", trusted + " --endpoints=http://{host1}", " --endpoints=http://{host1}", " --endpoints={host1}", " --cacert=client-key.pem --cert=client.pem --key=client-key.pem",
		" --cacert=ca.pem --cert=client.pem", " --cacert=ca.pem --key=client-key.pem", " --cacert=ca.pem --cert=client.pem --key=stranger-key.pem", " --cacert=ca.pem --cert=none.pem --key=client-key.pem", trusted + " --user=root:x",
	} {
		lines = append(lines, parity.L("etcdctl get a"+flags+briefly))
	}
	for _, cmd := range []string{"endpoint health", "endpoint status", "member list", "defrag"} {
		for _, flags := range []string{" --cacert=ca.pem", " --cacert=other-ca.pem --cert=client.pem --key=client-key.pem", stranger} {
			lines = append(lines, parity.L("etcdctl "+cmd+flags+briefly))
		}
	}
	lines = append(lines, certificatesByVariable()...)
	ca := certs.NewCA(t)
	parity.Scenario{Members: 1, Apart: true, CA: ca, Prepare: pems(ca, certs.NewCA(t)), Lines: lines}.Run(t, programs(t), wanted())
}

// certificatesByVariable has the same from the environment, whole and mixed
// with flags.
func certificatesByVariable() []parity.Line {
	all := []string{"ETCDCTL_CACERT=ca.pem", "ETCDCTL_CERT=client.pem", "ETCDCTL_KEY=client-key.pem"}
	var lines []parity.Line
	with := func(line string, env ...string) {
		lines = append(lines, parity.L(line).With(func(l *parity.Line) { l.Env = env }))
	}
	for _, cmd := range []string{"get a", "endpoint health", "member list -w json", "endpoint status --cluster"} {
		with("etcdctl "+cmd, all...)
	}
	with("etcdctl get a --cacert=ca.pem", all...)
	with("etcdctl get a --cacert=other-ca.pem"+briefly, all[1:]...)
	with("etcdctl get a"+briefly, append(all[1:], "ETCDCTL_CACERT=other-ca.pem")...)
	with("etcdctl get a"+briefly, append(all[1:], "ETCDCTL_INSECURE_SKIP_TLS_VERIFY=true")...)
	with("etcdctl get a"+briefly, append(all[1:], "ETCDCTL_INSECURE_SKIP_TLS_VERIFY=junk")...)
	with("etcdctl get a"+briefly, all[:2]...)
	with("etcdctl get a"+briefly, append(all, "ETCDCTL_INSECURE_TRANSPORT=false")...)
	with("etcdctl get a"+briefly, "ETCDCTL_CACERT=", "ETCDCTL_CERT=", "ETCDCTL_KEY=")
	return lines
}
