//go:build !windows

package parity_test

// A shape is a command line with choices in it: [x] may be left out, <a|b> is one
// of several, and a word in braces stands for one of pools, or for what
// parity.Line replaces. Quotes keep spaces, as in parity.L.
func shapes() map[string][]string {
	return map[string][]string{
		"keys": {
			"etcdctl put {key} {value} [--prev-kv] [{format}]", "etcdctl put {key} {value} [--lease={lease}] [{format}]", "etcdctl put {key} [{value}] <--ignore-value|--ignore-lease> [{format}]",
			"etcdctl put {key} [{value}] [{global}]", "etcdctl put {key} {value} {value} [{format}]",
			"etcdctl get {key} [{format}]", "etcdctl get {key} {scope} [{read}] [{format}]", "etcdctl get {key} {scope} {read} {read} [{format}]", "etcdctl get {key} {key} [{read}] [{format}] [{global}]",
			"etcdctl get {key} {scope} [{read}] {global} [{format}]", "etcdctl get [{key}] [{read}] [{read}] [{read}]",
			"etcdctl del {key} [<--prefix|--from-key|--range>] [--prev-kv] [{format}]", "etcdctl del {key} <--prefix|--from-key> [{global}] [{format}]",
			"etcdctl txn {format}", "etcdctl txn [{format}]", "etcdctl txn [{global}]",
			"etcdctl compaction {revision} [--physical] [{format}]",
		},
		"leases": {
			"etcdctl lease grant <1000|2000|3000|x|5000> [{format}]", "etcdctl lease list [{format}]", "etcdctl lease revoke {lease} [{format}]", "etcdctl lease timetolive {lease} [--keys] [{format}]",
			"etcdctl lease keep-alive {lease} --once [{format}]", "etcdctl lease [{word}]", "etcdctl lease grant [{word}] [{word}]",
		},
		"cluster": {
			"etcdctl member list [{format}] [--consistency=<l|s|x>]", "etcdctl endpoint <health|status|hashkv> [--cluster] [{format}]", "etcdctl endpoint hashkv --rev={revision} [{format}]",
			"etcdctl endpoint <health|status|hashkv> --endpoints={endpoints} --command-timeout=300ms [{format}]", "etcdctl alarm <list|disarm> [{format}]", "etcdctl move-leader [<{m1}|1234|{word}>] [{format}]",
			"etcdctl member <promote|remove|update> [<{word}|1234>] [{format}]", "etcdctl member add [{word}] [--peer-urls=<junk|''|{peer1}>] [{format}]", "etcdctl downgrade <validate|cancel> [<3.6|3.5|{word}>] [{format}]",
			"etcdctl defrag [--cluster] [{format}]", "etcdctl snapshot save {file} [{global}] [{format}]", "etcdctl snapshot <status|restore> {file}", "etcdctl version [{format}]", "etcdctl options", "etcdctl completion <bash|zsh|fish|{word}>",
		},
		"users": {
			"etcdctl user add {user}:pw [{format}]", "etcdctl user add {user} --no-password [{format}]", "etcdctl user <list|get|delete> [{user}] [{format}]", "etcdctl user get {user} --detail [{format}]",
			"etcdctl role <list|add|get|delete> [{role}] [{format}]", "etcdctl role grant-permission {role} <read|write|readwrite|none> {key} [{key}] [<--prefix|--from-key>] [{format}]",
			"etcdctl role revoke-permission {role} {key} [{key}] [<--prefix|--from-key>] [{format}]", "etcdctl user <grant-role|revoke-role> {user} {role} [{format}]", "etcdctl auth status [{format}]",
			"etcdctl auth <disable|{word}> [{format}]",
		},
		"files": {
			"etcdutl snapshot status {db} [{format}]", "etcdutl hashkv {db} [--rev {revision}] [{format}]", "etcdutl snapshot restore {db} --data-dir {new} [{restore}] [{restore}] [{format}]",
			"etcdutl snapshot restore <s1.db|s2.db> --data-dir {new} [{restore}]", "etcdutl snapshot restore {db} --data-dir <{dir}|taken|s1.db>",
			"etcdutl snapshot restore {db} --data-dir {new} --skip-hash-check [{restore}]", "etcdutl migrate --data-dir {dir} --target-version <3.5|3.6|3.7|x> [--force]", "etcdutl defrag --data-dir {dir}",
			"etcdutl snapshot status {dir}/member/snap/db [{format}]", "etcdutl version [{format}]",
		},
	}
}

// pools are what the words of shapes stand for. Values without a meaning are
// among them on purpose.
func pools() map[string][]string {
	return map[string][]string{
		"key":       {"a", "b", "k", "k1", "k2", "k/1", "k/2", "''", "ü", "'two words'", "z", "%s", "-"},
		"value":     {"1", "2", "''", "'a b'", "<&>", "\\n", "ü", "'\"'", "0x1", "{key}"},
		"scope":     {"--prefix", "--from-key", "--range", "{key}", "--prefix --from-key"},
		"read":      {"--limit=<0|1|2|-1|x>", "--rev=<0|1|2|5|99999|-1>", "--keys-only", "--count-only", "--print-value-only", "--order=<ASCEND|DESCEND|descend|up>", "--sort-by=<KEY|CREATE|modify|VALUE|VERSION|x>", "--consistency=<l|s|x>", "--stream", "--min-mod-rev=<1|3|9>", "--max-mod-rev=<2|5>", "--min-create-rev=<1|4>", "--max-create-rev=<3|9>"},
		"format":    {"-w <simple|json|fields|table|protobuf|bogus>", "--hex", "--hex -w <json|fields|simple>", "--write-out=<json|JSON|>"},
		"global":    {"--max-request-bytes=<1|4|6|8|10|12|20|0|-1|x>", "--max-recv-bytes=<1|20|60|100|0|-1>", "--command-timeout=<5s|x|0>", "--dial-timeout=<2s|x>", "--keepalive-time=<1s|x>", "--user=<a|a:b>", "--insecure-transport=<true|x>", "--cert=''", "--discovery-srv=''"},
		"lease":     {"0", "1234", "0x12", "zz", "{granted}", "{granted}", "''"},
		"revision":  {"0", "1", "2", "3", "99999", "-1", "x", "''"},
		"endpoints": {"{ep1}", "{dead}", "{ep1},{dead}", "{ep1},{ep1}", "''"},
		"user":      {"u1", "u2", "root", "''"},
		"role":      {"r1", "r2", "root", "''"},
		"file":      {"s1.db", "s2.db", "no/such/s.db", "''"},
		"word":      {"x", "''", "--", "-1", "ü", "a=b", "{key}", "http://a:1", "0"},
		"restore":   {"--name <m1|''>", "--bump-revision <0|1|1000|x|-1>", "--bump-revision 5 --mark-compacted", "--mark-compacted", "--wal-dir {new}-wal", "--initial-cluster <m1=http://10.0.0.1:2380|x|''>", "--initial-advertise-peer-urls <http://10.0.0.1:2380|x|''>", "--initial-cluster-token <t|''>", "--initial-memory-map-size <0|1000000|x>"},
		"dir":       {"d1", "d2", "d3"},
	}
}

// txnInputs are what txn reads: good, malformed, and what crashes upstream's.
func txnInputs() []string {
	return []string{
		"\n\n\n", "", "\nget a\n\n", "value(\"a\") = \"1\"\n\nput a 2\n\nput a 3\n\n", "mod(\"a\") > \"0\"\n\nget k --prefix\n\ndel k1\n\n", "version(\"nokey\") = \"0\"\n\nput nokey x\n\n\n",
		"create(\"a\") < \"99\"\n\nget a --keys-only\nget b\n\nget c\n\n", "junk\n\n\n\n", "\njunk\n\n\n", "\nput a\n\n\n", "\nget a --limit=x\n\n\n", "val(\"a\") = \"1\"\n\n\n\n",
		"lease(\"a\") = \"0\"\n\n\n\n", "m(\"a\") >= \"1\"\n\n\n\n", "\nput \"a b\" \"c d\"\n\n\n", "\ndel k1 --prev-kv\n\n\n", "\nget '' --prefix --count-only\n\n\n",
	}
}
