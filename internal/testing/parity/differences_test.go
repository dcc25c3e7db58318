//go:build !windows

package parity_test

import "github.com/etcdkit/etcdkit/internal/testing/parity"

// wanted lists every line that may differ, each by one of the three deviations
// that docs/differences.md gives for upstream's names.
func wanted() []parity.Difference {
	const crash = "upstream crashes: a crash is fixed, not copied"
	txn := func(compare string) string {
		l := parity.L("etcdctl txn")
		l.Stdin = compare + "\n\nget a\n\nget b\n\n"
		return l.String()
	}
	return []parity.Difference{
		{Line: txn(`value("a") == "1"`), Reason: crash, Code: 3, Stderr: "malformed comparison"},
		{Line: txn(`m("a") >= "1"`), Reason: crash, Code: 3, Stderr: "malformed comparison"},
		{Line: txn(`lease("a") = "0"`), Reason: crash, Code: 0},
	}
}
