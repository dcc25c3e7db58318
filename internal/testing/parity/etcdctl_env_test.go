//go:build !windows

package parity_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcdkit/etcdkit/internal/testing/parity"
)

// globalValues has a good value for each global flag.
func globalValues() map[string]string {
	return map[string]string{
		"endpoints": "{ep1}", "debug": "false", "write-out": "json", "hex": "true", "dial-timeout": "1s", "command-timeout": "2s", "keepalive-time": "3s", "keepalive-timeout": "7s", "max-request-bytes": "100000", "max-recv-bytes": "100000",
		"insecure-transport": "true", "insecure-discovery": "true", "insecure-skip-tls-verify": "false", "discovery-srv-name": "x", "user": "", "password": "x",
	}
}

func TestEtcdctlFlagsAndVariables(t *testing.T) {
	t.Parallel()
	lines := parity.Lines("etcdctl put a 1")
	with := func(line string, env ...string) {
		l := parity.L(line)
		l.Env = env
		lines = append(lines, l)
	}
	for flag, good := range globalValues() {
		variable := "ETCDCTL_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
		with("etcdctl get a --command-timeout=3s", variable+"=not-a-value")
		with("etcdctl get a", variable+"="+good)
		with("etcdctl get a", variable+"=")
		with("etcdctl get a --"+flag+"="+good, variable+"="+good)
		with("etcdctl get a --" + flag + "=not-a-value --command-timeout=2s")
		with("etcdctl get a --" + flag + "=" + good)
	}
	for _, variable := range []string{"ETCDCTL_API=3", "ETCDCTL_API=2", "ETCDCTL_PREFIX=true", "ETCDCTL_NOSUCH=1", "ETCDCTL_CLUSTER=true", "ETCDCTL_WATCH_KEY=a", "ETCDKIT_ENDPOINTS=junk", "ETCDCTL_HELP=1"} {
		with("etcdctl get a", variable)
		with("etcdctl endpoint status", variable)
		with("etcdctl defrag", variable)
		with("etcdctl version", variable)
	}
	for _, word := range []string{"true", "false", "junk"} {
		for _, sub := range []string{"health", "status", "hashkv"} {
			with("etcdctl endpoint "+sub+" --endpoints={host1}", "ETCDCTL_CLUSTER="+word)
			with("etcdctl endpoint "+sub+" --endpoints={host1} --cluster", "ETCDCTL_CLUSTER="+word)
		}
	}
	with("etcdctl get a", "ETCDCTL_API=3", "ETCDCTL_NOSUCH=1")
	with("etcdctl compaction 1", "ETCDCTL_COMMAND_TIMEOUT=1ns")
	with("etcdctl get a", "ETCDCTL_COMMAND_TIMEOUT=1ns")
	with("etcdctl endpoint status", "ETCDCTL_COMMAND_TIMEOUT=1ns")
	parity.Scenario{Members: 1, Lines: lines}.Run(t, programs(t), wanted())
}

func TestEtcdctlConnectionErrors(t *testing.T) {
	t.Parallel()
	lines := parity.Lines(
		"etcdctl get a --cert=", "etcdctl get a --key=", "etcdctl get a --cacert=", "etcdctl get a --cert=none.pem", "etcdctl get a --cert=none.pem --key=none.pem", "etcdctl get a --cacert=none.pem", "etcdctl get a --key=none.pem",
		"etcdctl get a --cacert=junk.pem", "etcdctl get a --cert=junk.pem --key=junk.pem", "etcdctl endpoint health --cacert=junk.pem", "etcdctl endpoint health --cert=none.pem --key=none.pem", "etcdctl endpoint status --cacert=none.pem", "etcdctl snapshot save x --cacert=none.pem",
		"etcdctl get a --endpoints=", "etcdctl get a --endpoints=://", "etcdctl get a --endpoints=http://", "etcdctl get a --endpoints=ftp://127.0.0.1:1", "etcdctl get a --endpoints=https://{deadhost}", "etcdctl get a --endpoints=unix:///no/such/socket",
		"etcdctl get a --endpoints={deadhost}", "etcdctl get a --endpoints=' {dead} '", "etcdctl get a --insecure-transport=false", "etcdctl get a --insecure-transport=false --insecure-skip-tls-verify", "etcdctl get a --user=u:p", "etcdctl member list --user=u:p",
		"etcdctl endpoint health --user=u:p", "etcdctl endpoint status --cluster", "etcdctl endpoint health --cluster", "etcdctl defrag --cluster", "etcdctl move-leader 1", "etcdctl check perf --load=nosuch", "etcdctl check datascale --load=nosuch", "etcdctl check perf a --load=nosuch",
		"etcdctl get a --discovery-srv=nosuch.invalid", "etcdctl endpoint health --discovery-srv=nosuch.invalid", "etcdctl get a -d nosuch.invalid --insecure-discovery=false", "etcdctl get a --max-request-bytes=-1", "etcdctl get a --keepalive-time=0s", "etcdctl get a --dial-timeout=-1s",
	)
	junk := func(t testing.TB, dir string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "junk.pem"), []byte("junk"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parity.Scenario{Prepare: junk, Lines: unreachable(lines)}.Run(t, programs(t), wanted())
}
