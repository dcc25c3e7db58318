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
		{Line: "etcdutl snapshot status truncated", Reason: crash, Code: 1, Stderr: "the file is truncated: 100000 bytes, and the database needs 307200"},
		{Line: "etcdutl snapshot status zero-page", Reason: crash, Code: 1, Stderr: "page 40, byte 163840"},
		{Line: "etcdutl hashkv truncated", Reason: crash, Code: 1, Stderr: "the file is truncated"},
		{Line: "etcdutl hashkv zero-page", Reason: crash, Code: 1, Stderr: "page 40, byte 163840"},
		{Line: "etcdutl hashkv long.txt", Reason: crash, Code: 1, Stderr: "invalid database"},
		{
			Line:   "etcdutl snapshot restore d/member/snap/db --data-dir e --skip-hash-check",
			Reason: "upstream's restore leaves a half-made member behind when it fails", Code: 0,
		},
	}
}
