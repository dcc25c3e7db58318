//go:build !windows

package parity_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/testing/parity"
)

// inFormats repeats each line in every format, and in the whole matrix also in
// one that does not exist.
func inFormats(lines ...string) []parity.Line {
	formats := []string{"", " -w json", " -w fields", " -w table", " -w protobuf", " --hex -w json"}
	if wholeMatrix {
		formats = append(formats, " -w simple", " --hex", " --hex -w fields", " --hex -w table", " -w bogus")
	}
	var all []parity.Line
	for _, s := range lines {
		for _, format := range formats {
			all = append(all, parity.L(s+format))
		}
	}
	return all
}

func concat(parts ...[]parity.Line) []parity.Line {
	var all []parity.Line
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func stdin(line, text string) parity.Line {
	l := parity.L(line)
	l.Stdin = text
	return l
}

func TestEtcdctlKeysAndValues(t *testing.T) {
	t.Parallel()
	lines := concat(
		inFormats("etcdctl get a", "etcdctl put a 1", "etcdctl put a 2 --prev-kv", "etcdctl get a", "etcdctl del a --prev-kv", "etcdctl del a"),
		parity.Lines("etcdctl put k1 v1", "etcdctl put k2 v2", "etcdctl put k3 v3", "etcdctl put k1 v1b", "etcdctl put other x", "etcdctl put '' empty", "etcdctl get ''"),
		inFormats("etcdctl get k --prefix", "etcdctl get k1 k3", "etcdctl get k --prefix --limit=1", "etcdctl get k --prefix --keys-only", "etcdctl get k --prefix --count-only",
			"etcdctl get k --prefix --print-value-only", "etcdctl get k --prefix --stream", "etcdctl get nothing"),
		ranges(),
		limits(),
		odd(),
		[]parity.Line{
			stdin("etcdctl put in", "from standard input\n"), parity.L("etcdctl get in"), stdin("etcdctl put in", ""), stdin("etcdctl put", "x"),
			stdin("etcdctl put in -w json", "\x00\xff"), parity.L("etcdctl get in -w json"), parity.L("etcdctl get in -w fields"), parity.L("etcdctl get in --hex"),
		},
	)
	parity.Scenario{Members: 1, Lines: lines}.Run(t, programs(t), wanted())
}

// ranges are the flags of get and del that choose what is read.
func ranges() []parity.Line {
	return parity.Lines(
		"etcdctl get '' --prefix", "etcdctl get '' --from-key", "etcdctl get k2 --from-key", "etcdctl get k --prefix --from-key", "etcdctl get k z --prefix", "etcdctl get k z --from-key",
		"etcdctl get k --prefix --order=DESCEND", "etcdctl get k --prefix --order=descend", "etcdctl get k --prefix --order=up", "etcdctl get k --prefix --sort-by=create",
		"etcdctl get k --prefix --sort-by=MODIFY --order=ASCEND", "etcdctl get k --prefix --sort-by=VALUE --order=DESCEND", "etcdctl get k --prefix --sort-by=VERSION", "etcdctl get k --prefix --sort-by=size",
		"etcdctl get k1 --rev=3", "etcdctl get k1 --rev=1", "etcdctl get k1 --rev=99999", "etcdctl get k1 --rev=-1", "etcdctl get k1 --consistency=s", "etcdctl get k1 --consistency=l", "etcdctl get k1 --consistency=x",
		"etcdctl get k --prefix --min-mod-rev=5", "etcdctl get k --prefix --max-mod-rev=90", "etcdctl get k --prefix --min-create-rev=90 --max-create-rev=5", "etcdctl get k --prefix --min-mod-rev=90 --max-mod-rev=5",
		"etcdctl get k --prefix --min-create-rev=1 --max-create-rev=100", "etcdctl get k --prefix --keys-only --count-only", "etcdctl get k --prefix --count-only -w fields --limit=1",
		"etcdctl get k --prefix --print-value-only -w json", "etcdctl get k --prefix --limit=-1", "etcdctl get k1 k2 k3", "etcdctl get k --prefix --stream --order=DESCEND", "etcdctl get k1 --stream --rev=99999",
		"etcdctl get k --prefix --stream --limit=1 -w json", "etcdctl get k --prefix --stream --keys-only -w fields", "etcdctl get k --prefix --stream --min-mod-rev=5", "etcdctl get k --prefix --stream --count-only -w fields",
		"etcdctl del", "etcdctl del k1 k2", "etcdctl del k1 k2 --range", "etcdctl del k1 k2 k3", "etcdctl del k --prefix --from-key", "etcdctl del k z --prefix", "etcdctl del k z --range --prefix", "etcdctl del z --range",
		"etcdctl del k --prefix --prev-kv", "etcdctl del z --from-key", "etcdctl del ''", "etcdctl put", "etcdctl put a b c", "etcdctl put -- a -b", "etcdctl put a -b", "etcdctl put a --ignore-value",
		"etcdctl put a b --ignore-value", "etcdctl put nokey --ignore-value", "etcdctl put nokey x --ignore-lease", "etcdctl put a b --ignore-lease", "etcdctl put a b --lease=zz", "etcdctl put a b --lease=0x12", "etcdctl put a b --lease=123",
		"etcdctl put a b --lease=0 --ignore-lease", "etcdctl get --endpoints={ep1},{dead} a", "etcdctl get --endpoints={ep1} --endpoints={dead} a",
	)
}

// limits are requests and answers around the largest that the client allows.
func limits() []parity.Line {
	var lines []parity.Line
	for _, size := range []string{"-1", "1", "5", "6", "7", "8", "9", "12", "21", "22"} {
		for _, line := range []string{"etcdctl get k --prefix", "etcdctl get k --prefix --stream", "etcdctl get k1 k3", "etcdctl get k1", "etcdctl put k1 v1b"} {
			lines = append(lines, parity.L(line+" --max-request-bytes="+size))
		}
	}
	return append(lines, parity.Lines("etcdctl get k --prefix --max-recv-bytes=60", "etcdctl get k --prefix --stream --max-recv-bytes=60", "etcdctl get k --prefix --max-recv-bytes=60 --max-request-bytes=1")...)
}

// odd are keys and values with bytes that a printer has to get right.
func odd() []parity.Line {
	var lines []parity.Line
	for _, value := range []string{"\xff\xfe\x01", "two\nlines", `"quoted" 'both'`, "tab\tand\rreturn", "ünïcödé ☃ \U0001F600", "<html>&amp;\u2028", "-dash", " ", "\\x00\\n"} {
		lines = append(lines, parity.Line{Args: []string{"etcdctl", "put", "--", "odd/" + value, value}})
		for _, format := range []string{"simple", "json", "fields", "protobuf"} {
			lines = append(lines, parity.Line{Args: []string{"etcdctl", "get", "-w", format, "--", "odd/" + value}})
		}
		lines = append(lines, parity.Line{Args: []string{"etcdctl", "get", "--hex", "--", "odd/" + value}})
	}
	return append(lines, parity.Lines("etcdctl get odd/ --prefix --keys-only", "etcdctl get odd/ --prefix -w fields --hex", "etcdctl del odd/ --prefix --prev-kv")...)
}

func TestEtcdctlTransactions(t *testing.T) {
	t.Parallel()
	var lines []parity.Line
	for _, compare := range []string{
		`value("a") = "1"`, `val("a") != "1"`, `value("a") < "2"`, `value("a") > "2"`, `version("a") = "1"`, `ver("a") > "0"`, `create("a") = "2"`, `c("a") < "9"`, `mod("a") = "2"`, `m("a") > "99"`,
		`version("none") = "0"`, `version("a") = "x"`, `nosuch("a") = "1"`, `value(a) = "1"`, `value("a") = 1`, `value("a") == "1"`, `value("a")`, `value("a") = "1" more`, `m("a") >= "1"`, `lease("a") = "0"`, `=`, `("a") = "1"`,
	} {
		lines = append(lines, stdin("etcdctl txn", compare+"\n\nget a\n\nget b\n\n"))
	}
	for _, ops := range []string{
		"put a 2\n\n\n", "put a \"two words\"\nget a\ndel a --prev-kv\n\n\n", "get '' --prefix\n\n\n", "put\n\n\n", "get\n\n\n", "del\n\n\n", "nosuch a\n\n\n", "put a b c\n\n\n", "put a b\nput a c\n\n\n", "get a --no-such-flag\n\n\n",
		"get a --rev=99999\n\n\n", "get a --limit=x\n\n\n", "put \"esc\\x41\\n\" 'single $q'\nget \"esc\\x41\\n\"\n\n\n", "put a b\n\n", "put a b\n", "put a b", "", "put \"unclosed\n\n\n", "txn\n\n\n", "\n\n",
	} {
		lines = append(lines, stdin("etcdctl txn", "\n"+ops))
	}
	for _, format := range []string{"json", "fields", "table", "protobuf", "simple --hex", "json --hex", "fields --hex", "bogus"} {
		lines = append(lines, stdin("etcdctl txn -w "+format, "mod(\"a\") > \"0\"\n\nput t 1 --prev-kv\nget t\n\nget b\n\n"), stdin("etcdctl txn -w "+format, "mod(\"a\") > \"999\"\n\nput t 1\n\nget t\ndel t --prev-kv\n\n"))
	}
	lines = append(lines,
		stdin("etcdctl txn -i", "value(\"a\") = \"1\"\n\nput a 2\n\nput b 3\n\n"), stdin("etcdctl txn --interactive", "nonsense\n\n\n\n"), parity.L("etcdctl txn a"), stdin("etcdctl txn", "\nget a --print-value-only\n\n\n"),
		stdin("etcdctl txn", "\nget a --keys-only\nget a --count-only\nget a --consistency=s\nget a --order=x\n\n\n"), stdin("etcdctl txn", "\ndel a b\n\n\n"))
	lines = concat(parity.Lines("etcdctl put a 1", "etcdctl put b 2"), lines)
	parity.Scenario{Members: 1, Lines: lines}.Run(t, programs(t), wanted())
}

func TestEtcdctlLeasesAndHistory(t *testing.T) {
	t.Parallel()
	granted := parity.L("etcdctl lease grant 5000")
	granted.Capture = "lease"
	lines := concat(
		parity.Lines("etcdctl put a 1", "etcdctl put a 2", "etcdctl put a 3"),
		[]parity.Line{granted},
		parity.Lines("etcdctl put leased x --lease={lease}", "etcdctl get leased -w json", "etcdctl get leased -w fields", "etcdctl put leased z --ignore-lease", "etcdctl put leased --ignore-value --lease={lease}"),
		inFormats("etcdctl lease timetolive {lease} --keys", "etcdctl lease timetolive {lease}", "etcdctl lease list", "etcdctl lease keep-alive {lease} --once", "etcdctl lease timetolive 1234abcd", "etcdctl lease keep-alive 1234abcd --once"),
		inFormats("etcdctl lease revoke 1234abcd", "etcdctl lease grant 600"),
		// What is granted for nothing ends within seconds, so no list comes after it.
		parity.Lines("etcdctl lease list x", "etcdctl lease grant", "etcdctl lease grant x", "etcdctl lease grant 0", "etcdctl lease grant -- -5", "etcdctl lease grant 1 2", "etcdctl lease grant 99999999999", "etcdctl lease revoke", "etcdctl lease revoke 0x12", "etcdctl lease revoke zz",
			"etcdctl lease timetolive", "etcdctl lease timetolive zz", "etcdctl lease keep-alive", "etcdctl lease keep-alive zz", "etcdctl lease keep-alive 1234abcd", "etcdctl lease revoke {lease}", "etcdctl lease timetolive {lease}", "etcdctl get leased"),
		parity.Lines("etcdctl compaction 3", "etcdctl compaction 3", "etcdctl compaction 2", "etcdctl compaction 99999", "etcdctl compaction x", "etcdctl compaction", "etcdctl compaction 1 2", "etcdctl compaction -- -1", "etcdctl compaction 4 --physical -w json",
			"etcdctl get a --rev=2", "etcdctl watch a --rev=1", "etcdctl watch a --rev=1 -w json", "etcdctl compact 5"),
		watches(),
		locks(),
	)
	parity.Scenario{Members: 1, Lines: lines}.Run(t, programs(t), wanted())
}

func until(line, text string) parity.Line {
	l := parity.L(line)
	l.Until = text
	return l
}

func watches() []parity.Line {
	lines := parity.Lines("etcdctl put w1 a", "etcdctl put w1 b", "etcdctl put w2 c", "etcdctl del w1", "etcdctl put wz last")
	const from = " --rev=5"
	for format, end := range map[string]string{
		"": "last\n", " -w json": "bGFzdA==", " -w fields": "\"last\"\n\"Lease\" : 0\n", " -w protobuf": "last", " --hex": `\x6c\x61\x73\x74`, " -w table": "last",
	} {
		lines = append(lines, until("etcdctl watch w --prefix"+from+format, end), until("etcdctl watch w --prefix --prev-kv"+from+format, end))
	}
	watchOnly := until("etcdctl watch w wzz"+from, "last\n")
	watchOnly.Signal = syscall.SIGTERM
	byVariable := until("etcdctl watch"+from, "last\n")
	byVariable.Env = []string{"ETCDCTL_WATCH_KEY=w", "ETCDCTL_WATCH_RANGE_END=x"}
	bothGiven := parity.L("etcdctl watch w")
	bothGiven.Env = []string{"ETCDCTL_WATCH_KEY=w"}
	endAlone := parity.L("etcdctl watch")
	endAlone.Env = []string{"ETCDCTL_WATCH_RANGE_END=w"}
	typed := stdin("etcdctl watch -i", "watch w --prefix --rev=5\n")
	typed.StdinUntil = "last\n"
	return append(append(lines, watchOnly, byVariable, bothGiven, endAlone, typed,
		stdin("etcdctl watch -i", "nonsense\nwatch\nwatch a b c\nwatch --no-such w\nprogress\n\n"), stdin("etcdctl watch -i", "watch w --rev=x\n"), stdin("etcdctl watch -i", "watch -h\n"), stdin("etcdctl watch -i", "watch \"unclosed\n"),
		stdin("etcdctl watch -i", "")),
		parity.Lines("etcdctl watch", "etcdctl watch --", "etcdctl watch w --", "etcdctl watch w x --prefix", "etcdctl watch w2 --rev=5 -- sh -c 'echo $ETCD_WATCH_EVENT_TYPE $ETCD_WATCH_KEY $ETCD_WATCH_VALUE $ETCD_WATCH_REVISION; exit 3'",
			"etcdctl watch w1 --rev=5 -- /no/such/program", "etcdctl watch w1 --rev=5 -- sh -c 'exit 3'", "etcdctl watch w1 wz --rev=5 -- false", "etcdctl watch -- echo a", "etcdctl watch --prefix w --rev=5 -- false", "etcdctl watch foo bar baz --rev=5 -- false")...)
}

func locks() []parity.Line {
	lock := until("etcdctl lock l1", "l1/")
	term := until("etcdctl lock l1 --ttl=20", "l1/")
	term.Signal = syscall.SIGTERM
	elect := until("etcdctl elect e1 p1", "p1")
	return append([]parity.Line{lock, term, elect, until("etcdctl elect e1 p1 -w json", "cDE="), until("etcdctl lock l1 -w json", "create_revision"), until("etcdctl lock l1 -w fields", "Count"), until("etcdctl elect e1 p1 -w fields", "Count")},
		parity.Lines("etcdctl lock", "etcdctl lock l2 echo hello", "etcdctl lock l2 -- sh -c 'exit 7'", "etcdctl lock l2 -- sh -c 'echo $ETCD_LOCK_KEY $ETCD_LOCK_REV'", "etcdctl lock l2 /no/such/program", "etcdctl lock l2 --ttl=x", "etcdctl lock l2 --ttl=-1 true", "etcdctl lock l2 -w table -- true",
			"etcdctl elect", "etcdctl elect e2", "etcdctl elect e2 p -l", "etcdctl elect e2 a b", "etcdctl elect -l")...)
}

func TestEtcdctlMirrors(t *testing.T) {
	t.Parallel()
	// One that works runs on, until a watch of the copies has seen the last.
	mirror := func(line, watched, last string) parity.Line {
		l := parity.L(line)
		l.Meanwhile = []parity.Line{until("etcdctl watch --prefix --rev=1 "+watched, last)}
		return l
	}
	// One that cannot work runs on, too, and says nothing that could be waited for.
	onAndOn := func(line string) parity.Line {
		return parity.L(line).With(func(l *parity.Line) { l.Bound = 3 * time.Second })
	}
	lines := concat(
		parity.Lines("etcdctl put a/1 x", "etcdctl put a/2 y", "etcdctl put b/1 z"),
		[]parity.Line{
			mirror("etcdctl make-mirror --prefix a/ --dest-prefix copy/ {ep1}", "copy/", "y\n"),
			mirror("etcdctl make-mirror --prefix b/ --dest-prefix copyb/ --max-txn-ops=1 {ep1} --rev=2", "copyb/", "z\n"),
		},
		parity.Lines("etcdctl get copy --prefix", "etcdctl make-mirror", "etcdctl make-mirror a b", "etcdctl make-mirror --no-dest-prefix --dest-prefix x {ep1}", "etcdctl make-mirror --no-dest-prefix --prefix nothing {ep1} --rev=x"),
		[]parity.Line{onAndOn("etcdctl make-mirror {dead} --dial-timeout=300ms --dest-user=u"), onAndOn("etcdctl make-mirror --prefix nothing --dest-user=u:p {ep1}")},
	)
	parity.Scenario{Members: 1, Lines: lines}.Run(t, programs(t), wanted())
}
