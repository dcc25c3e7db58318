//go:build !windows

package parity_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/etcdkit/etcdkit/internal/testing/parity"
)

// files fills a folder with a good snapshot and with what is none. Upstream's
// hashkv changes what it reads, so there is a copy for it.
func files(t testing.TB, dir string) {
	t.Helper()
	good, err := os.ReadFile(filepath.Join("..", "..", "..", "snapshot", "testdata", "kubernetes.db"))
	if err != nil {
		t.Fatal(err)
	}
	const page, trailer = 4096, 32
	change := func(at int, with ...byte) []byte {
		b := append([]byte(nil), good...)
		copy(b[at:], with)
		return b
	}
	text := make([]byte, 0, 24000)
	for i := range 4000 {
		text = fmt.Appendf(text, "%d\n", i)
	}
	for name, b := range map[string][]byte{
		"good.db": good, "hash.db": good, "empty": nil, "empty-1": nil, "empty-2": nil, "empty-3": nil, "short.txt": []byte("hello text\n"), "long.txt": text,
		"truncated": good[:100_000], "one-page": good[:5000], "no-trailer": good[:len(good)-trailer],
		"bad-value": change(120_000, 'U'), "bad-trailer": change(len(good)-10, 'U', 'U'),
		"zero-page": change(40*page, make([]byte, page)...), "bad-meta": change(40, 'U'),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, sub := range []string{"folder", "taken/member"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// utlLines are etcdutl's lines that end the same way whatever ran before.
func utlLines() []parity.Line {
	var all []string
	commands := []string{"", "snapshot", "snapshot status", "snapshot restore", "hashkv", "defrag", "migrate", "version", "completion", "help"}
	for _, c := range commands {
		all = append(all, "etcdutl "+c+" --help", "etcdutl help "+c, "etcdutl "+c+" --bogus")
	}
	for _, f := range []string{"simple", "json", "fields", "table", "protobuf", "bogus"} {
		all = append(all, "etcdutl -w "+f+" snapshot status good.db", "etcdutl snapshot status no-trailer --write-out="+f,
			"etcdutl hashkv hash.db -w "+f, "etcdutl hashkv -w "+f+" nothing", "etcdutl snapshot status nothing -w "+f, "etcdutl version -w "+f)
	}
	for _, rev := range []string{"0", "1", "2", "100", "294", "295", "-1", "x", "99999999"} {
		all = append(all, "etcdutl hashkv hash.db --rev "+rev)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell", "csh", ""} {
		all = append(all, "etcdutl completion "+shell)
	}
	for _, version := range []string{"3", "3.4", "3.6", "3.99", "a.b", `""`} {
		all = append(all, "etcdutl migrate --data-dir nothing --target-version "+version)
	}
	for _, file := range []string{"empty", "short.txt", "long.txt", "one-page", "bad-value", "bad-trailer", "bad-meta", "folder"} {
		all = append(all, "etcdutl snapshot status "+file)
	}
	for _, file := range []string{"empty", "short.txt", "long.txt", "truncated", "one-page", "bad-value", "bad-trailer", "bad-meta", "folder", "zero-page", "no-trailer"} {
		all = append(all, "etcdutl snapshot restore "+file+" --data-dir out-"+file)
	}
	return parity.Lines(append(all,
		"etcdutl", "etcdutl foo", "etcdutl snapshot foo", "etcdutl sna stat", "etcdutl s s good.db", "etcdutl v", "etcdutl versio a b", "etcdutl h",
		"etcdutl ha hash.db", "etcdutl hashkv", "etcdutl hashkv a b", "etcdutl defrag", "etcdutl defrag --data-dir nothing", "etcdutl def --data-dir good.db",
		"etcdutl migrate", "etcdutl migrate --data-dir x", "etcdutl migrate --target-version 3.6", "etcdutl --version", "etcdutl -w", "etcdutl --timeout x version",
		"etcdutl snapshot status", "etcdutl snapshot status a b", "etcdutl --timeout 1s snapshot status good.db", "etcdutl hashkv bad-value", "etcdutl hashkv no-trailer",
		"etcdutl hashkv bad-meta", "etcdutl hashkv empty-1", "etcdutl hashkv empty-2 --rev 2", "etcdutl hashkv empty-3 --rev -3 -w json",
		"etcdutl snapshot restore", "etcdutl snapshot restore a b", "etcdutl snapshot restore nothing --data-dir out-nothing",
		"etcdutl snapshot restore good.db --data-dir out", "etcdutl snapshot restore good.db --data-dir taken", "etcdutl snapshot restore good.db --data-dir good.db",
		"etcdutl snapshot restore good.db --data-dir o1 --name m1", "etcdutl snapshot restore good.db --data-dir o2 --name m1 --initial-cluster m1=http://10.0.0.1:2380",
		"etcdutl snapshot restore good.db --data-dir o3 --name m1 --initial-cluster m1=http://10.0.0.1:2380 --initial-advertise-peer-urls http://10.0.0.1:2380",
		"etcdutl snapshot restore good.db --data-dir o4 --initial-cluster bogus", `etcdutl snapshot restore good.db --data-dir o5 --initial-cluster ""`,
		"etcdutl snapshot restore good.db --data-dir o6 --initial-advertise-peer-urls bogus", "etcdutl snapshot restore good.db --data-dir o7 --wal-dir folder",
		"etcdutl snapshot restore good.db --data-dir o8 --wal-dir o8-wal", "etcdutl snapshot restore good.db --data-dir o9 --bump-revision 1000 --mark-compacted",
		"etcdutl snapshot restore good.db --data-dir o10 --bump-revision 3", "etcdutl snapshot restore good.db --data-dir o11 --mark-compacted",
		"etcdutl snapshot restore good.db --data-dir o12 --bump-revision -1", "etcdutl snapshot restore no-trailer --data-dir o13 --skip-hash-check",
		`etcdutl snapshot restore good.db --data-dir o14 --name ""`, "etcdutl snapshot restore good.db --data-dir o15 --initial-memory-map-size 1000000",
		"etcdutl snapshot restore good.db --data-dir o16 --initial-cluster a=http://1.1.1.1:1,b=http://1.1.1.1:1 --name a --initial-advertise-peer-urls http://1.1.1.1:1",
		"etcdutl snapshot restore good.db --data-dir o17 --wal-dir o17/wal", "etcdutl snapshot restore good.db --data-dir o18 --wal-dir ./o18/member/wal",
		// crashes, which are fixed
		"etcdutl snapshot status truncated", "etcdutl snapshot status zero-page", "etcdutl hashkv truncated", "etcdutl hashkv zero-page", "etcdutl hashkv long.txt",
	)...)
}

func TestEtcdutlOnFiles(t *testing.T) {
	t.Parallel()
	parity.Scenario{Prepare: files, Lines: utlLines()}.Run(t, programs(t), wanted())
}

// A restored directory is changed step by step, and looked at after each.
// Upstream's hashkv goes on with the compaction that --mark-compacted schedules
// and may end before it is through, so what it has read is not read again.
func TestEtcdutlOnADataDirectory(t *testing.T) {
	t.Parallel()
	db := "d/member/snap/db"
	parity.Scenario{Members: 1, Prepare: files, Lines: parity.Lines(
		"etcdutl snapshot restore good.db --data-dir d --bump-revision 5000 --mark-compacted",
		"etcdutl snapshot restore good.db --data-dir hashed --bump-revision 5000 --mark-compacted", "etcdutl hashkv hashed/member/snap/db -w json",
		"etcdutl snapshot restore good.db --data-dir early --bump-revision 5000 --mark-compacted", "etcdutl hashkv early/member/snap/db --rev 5293",
		"etcdutl snapshot restore good.db --data-dir late --bump-revision 5000 --mark-compacted", "etcdutl hashkv late/member/snap/db --rev 5295",
		"etcdutl snapshot status "+db+" -w json", "etcdutl snapshot restore good.db --data-dir d",
		"etcdutl migrate --data-dir d --target-version 3.6", "etcdutl snapshot status "+db, "etcdutl migrate --data-dir d --target-version 3.6",
		"etcdutl migrate --data-dir d --target-version 3.9", "etcdutl migrate --data-dir d --target-version 3.9 --force", "etcdutl snapshot status "+db,
		"etcdutl migrate --data-dir d --target-version 3.5 --force", "etcdutl snapshot status "+db, "etcdutl migrate --data-dir d --target-version 3.7",
		"etcdutl defrag --data-dir d", "etcdutl snapshot status "+db+" -w fields",
		"etcdutl snapshot restore "+db+" --data-dir e", "etcdutl snapshot restore "+db+" --data-dir e --skip-hash-check", "etcdutl hashkv e/member/snap/db",
		"etcdutl hashkv "+db,
		"etcdctl put a b", "etcdctl snapshot save s.db", "etcdutl snapshot restore s.db --data-dir f", "etcdutl hashkv s.db -w table",
	)}.Run(t, programs(t), wanted())
}
