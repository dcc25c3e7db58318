//go:build !windows

package parity_test

import (
	"testing"

	"github.com/etcdkit/etcdkit/internal/testing/parity"
)

func TestEtcdctlUsersAndRoles(t *testing.T) {
	t.Parallel()
	lines := concat(
		inFormats("etcdctl auth status", "etcdctl role add r1", "etcdctl role list", "etcdctl role grant-permission r1 read foo", "etcdctl role get r1", "etcdctl user add u1:pw", "etcdctl user list", "etcdctl user grant-role u1 r1", "etcdctl user get u1",
			"etcdctl user get u1 --detail", "etcdctl user revoke-role u1 r1", "etcdctl role revoke-permission r1 foo", "etcdctl user delete u1", "etcdctl role delete r1"),
		roles(),
		users(),
		parity.Lines("etcdctl auth enable", "etcdctl auth enable x", "etcdctl auth disable x", "etcdctl auth status x", "etcdctl auth disable", "etcdctl user add root:rootpw", "etcdctl put foo bar", "etcdctl auth enable"),
		credentials(),
		parity.Lines("etcdctl auth disable", "etcdctl auth disable --user=root:rootpw", "etcdctl get foo", "etcdctl get foo --user=root:rootpw"),
	)
	parity.Scenario{Members: 1, Server: []string{"--bcrypt-cost=4"}, Lines: lines}.Run(t, programs(t), wanted())
}

func roles() []parity.Line {
	return parity.Lines(
		"etcdctl role add", "etcdctl role add r2", "etcdctl role add r2", "etcdctl role add ''", "etcdctl role add a b", "etcdctl role get", "etcdctl role get none", "etcdctl role delete", "etcdctl role delete none", "etcdctl role list x",
		"etcdctl role grant-permission", "etcdctl role grant-permission r2", "etcdctl role grant-permission r2 read", "etcdctl role grant-permission r2 write a", "etcdctl role grant-permission r2 nosuch a", "etcdctl role grant-permission r2 READ a1",
		"etcdctl role grant-permission r2 readwrite b c", "etcdctl role grant-permission r2 read d e f", "etcdctl role grant-permission r2 read p/ --prefix", "etcdctl role grant-permission r2 write q --from-key", "etcdctl role grant-permission r2 read '' --prefix",
		"etcdctl role grant-permission r2 read '' --from-key", "etcdctl role grant-permission r2 read ''", "etcdctl role grant-permission r2 read '' --prefix --from-key", "etcdctl role grant-permission r2 read x --prefix --from-key", "etcdctl role grant-permission r2 read x y --prefix",
		"etcdctl role grant-permission r2 read x y --from-key", "etcdctl role grant-permission none read x", "etcdctl role get r2", "etcdctl role get r2 -w json", "etcdctl role get r2 -w fields", "etcdctl role get r2 -w protobuf",
		"etcdctl role revoke-permission", "etcdctl role revoke-permission r2", "etcdctl role revoke-permission r2 none", "etcdctl role revoke-permission r2 b c", "etcdctl role revoke-permission r2 p/ --prefix", "etcdctl role revoke-permission r2 q --from-key",
		"etcdctl role revoke-permission r2 x y --prefix", "etcdctl role revoke-permission r2 '' --prefix", "etcdctl role revoke-permission none x", "etcdctl role get r2", "etcdctl role get root",
	)
}

func users() []parity.Line {
	lines := parity.Lines(
		"etcdctl user add", "etcdctl user add u2:pw:colon", "etcdctl user add u2:pw", "etcdctl user add :pw", "etcdctl user add a b", "etcdctl user add nopw --no-password", "etcdctl user add u3 --new-user-password=pw3", "etcdctl user add u3:x --new-user-password=pw3",
		"etcdctl user add asked", "etcdctl user add u4:", "etcdctl user get", "etcdctl user get none", "etcdctl user get none --detail", "etcdctl user delete", "etcdctl user delete none", "etcdctl user list x", "etcdctl user passwd", "etcdctl user passwd u2", "etcdctl user passwd a b",
		"etcdctl user grant-role", "etcdctl user grant-role u2", "etcdctl user grant-role u2 none", "etcdctl user grant-role none r2", "etcdctl user grant-role u2 r2", "etcdctl user grant-role u2 r2 x", "etcdctl user revoke-role", "etcdctl user revoke-role u2 none", "etcdctl user revoke-role none r2",
		"etcdctl user get u2", "etcdctl user get u2 --detail", "etcdctl user get u2 --detail -w json", "etcdctl user list",
	)
	for _, input := range []string{"pw5\n", "two words\n", "", "\n", "noend"} {
		lines = append(lines, stdin("etcdctl user add u5 --interactive=false", input), stdin("etcdctl user passwd u2 --interactive=false", input), parity.L("etcdctl user delete u5"))
	}
	return append(lines, stdin("etcdctl user passwd u2 --interactive=false -w json", "pw\n"), stdin("etcdctl user passwd u2 --interactive=false -w fields", "pw\n"), stdin("etcdctl user passwd u2 --interactive=false -w table", "pw\n"))
}

// credentials are right, wrong, missing and mixed, for a command of each kind.
func credentials() []parity.Line {
	var lines []parity.Line
	for _, as := range []string{"", " --user=root:rootpw", " --user=root --password=rootpw", " --user=root:wrong", " --user=nobody:x", " --user=u2:pw", " --user=u3:pw3", " --user=root", " --password=x", " --user=", " --auth-jwt-token=junk", " --user=root:rootpw --auth-jwt-token=junk", " --user=root:rootpw --password=x"} {
		for _, cmd := range []string{"get foo", "put foo 2", "member list", "endpoint health", "endpoint status", "user list", "auth status", "lease list", "alarm list", "defrag"} {
			lines = append(lines, parity.L("etcdctl "+cmd+as+" --command-timeout=3s"))
		}
	}
	lines = append(lines, stdin("etcdctl txn --user=root:wrong", "\nget foo\n\n\n"), parity.L("etcdctl watch foo --user=nobody:x"), parity.L("etcdctl lock l --user=nobody:x"), parity.L("etcdctl snapshot save s.db --user=root:wrong"), parity.L("etcdctl snapshot save s.db --user=u2:pw"),
		parity.L("etcdctl endpoint health --cluster --user=root:wrong"), parity.L("etcdctl endpoint health --cluster"), parity.L("etcdctl endpoint status --cluster --user=root:rootpw"))
	byVariable := parity.L("etcdctl get foo")
	byVariable.Env = []string{"ETCDCTL_USER=root:rootpw"}
	split := parity.L("etcdctl get foo")
	split.Env = []string{"ETCDCTL_USER=root", "ETCDCTL_PASSWORD=rootpw"}
	return append(lines, byVariable, split)
}
