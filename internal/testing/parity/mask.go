package parity

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// mask replaces, in what one side printed, what can only differ by chance.
type mask struct {
	ids   map[uint64]string // ids that are known, by name
	words [][2]string       // ports and folders, and what to write for them: long ones first
}

// A rule masks what a pattern finds.
type rule struct {
	find *regexp.Regexp
	with string
}

// rules returns what is masked whatever the side. A table whose cells were
// masked loses its widths, which followed from them.
func rules() []rule {
	texts := []struct{ find, with string }{
		{`(\d+h)?(\d+m)?\d+\.\d+(ns|µs|ms|s)\b`, "<duration>"},
		{`remaining\(\d+s\)`, "remaining(<ttl>)"},
		{`("ttl":|"TTL" : )\d+`, "$1<ttl>"},
		{`\b\d+(\.\d+)? [kMGT]?B\b`, "<size>"},
		{`\b\d+%`, "<percent>"},
		{`("(?:dbSize|dbSizeInUse|raftIndex|raftAppliedIndex|raftTerm|raft_term)":)\d+`, "$1<n>"},
		{`("(?:DBSize|DBSizeInUse|RaftIndex|RaftAppliedIndex|RaftTerm)" : )\d+`, "$1<n>"},
		// endpoint status in words and as a table: term, index, applied index
		{`(<size>, (?:true|false), (?:true|false), )\d+, \d+, \d+`, "$1<n>, <n>, <n>"},
		{`(<size> │ +(?:true|false) │ +(?:true|false) │ +)\d+ │ +\d+ │ +\d+`, "$1<n> │ <n> │ <n>"},
		{`\b[0-9a-f]{15,16}\b`, "<id>"}, // made up by the server: leases, added members
		{`\b\d{16,20}\b`, "<id>"},
		{`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?`, "<time>"},
		{`etcd-endpoints://0x[0-9a-f]+`, "etcd-endpoints://<pointer>"},
		{`(memberID:\S+) +(alarm:)`, "$1 $2"}, // protobuf's debug text, on purpose unlike from build to build
		// A server that refuses a client's certificate, or does not get one, says so and hangs up: what the client sees of that is chance.
		{
			`code = (?:DeadlineExceeded|Unavailable) desc = (?:latest balancer error: )?(?:connection error: desc = \\"error reading server preface: )?` +
				`(?:remote error: tls: (?:certificate required|unknown certificate authority)|EOF|(?:(?:write|read) tcp [^"]*?)?(?:broken pipe|connection reset by peer))(?:\\")?`,
			"code = <late> desc = <hung up>",
		},
		{`latest balancer error: connection error`, "connection error"},
		{`code = (DeadlineExceeded|Unavailable) desc = connection error`, "code = <late> desc = connection error"},
		{`LocalAddr: '127\.0\.0\.1:\d+'`, "LocalAddr: '<local>'"},
		{`127\.0\.0\.1:\d+->`, "<local>->"},
	}
	all := make([]rule, len(texts))
	for i, t := range texts {
		all[i] = rule{regexp.MustCompile(t.find), t.with}
	}
	return all
}

// stdout masks standard output.
func (m mask) stdout(text string, sorted bool) string {
	text = m.apply(text)
	if sorted {
		items := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("\n[]{},\"", r) })
		slices.Sort(items)
		text = strings.Join(items, "\n")
	}
	return text
}

// stderr masks standard error. Of its log lines the distinct ones count: how
// often a client retries is up to the clock.
func (m mask) stderr(text string) string {
	if before, _, panicked := strings.Cut(text, "\ngoroutine "); panicked {
		text = before + "\n<stack>"
	}
	var kept []string
	logged := map[string]bool{}
	console := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\S+\t(debug|info|warn|error)\t`)
	for line := range strings.Lines(text) {
		if console.MatchString(line) {
			continue // etcdutl's log: what its packages do, by file and line
		}
		if strings.Contains(line, "during lease keep alive loop") {
			continue // logged by whichever goroutine is faster than the end of the process
		}
		if logLine, ok := plainLog(line); ok {
			line = m.apply(logLine)
			if logged[line] {
				continue
			}
			logged[line] = true
			kept = append(kept, line)
			continue
		}
		kept = append(kept, m.apply(line))
	}
	return strings.Join(kept, "")
}

func (m mask) apply(text string) string {
	for id, name := range m.ids {
		text = replaceID(text, id, name)
	}
	text = regexp.MustCompile(`"key":"[A-Za-z0-9+/=]+"`).ReplaceAllStringFunc(text, showLeaseKey)
	for _, w := range m.words {
		text = strings.ReplaceAll(text, w[0], w[1])
	}
	before := text
	for _, r := range rules() {
		text = r.find.ReplaceAllString(text, r.with)
	}
	if before != text && strings.Contains(text, "│") {
		return looseTable(text)
	}
	return text
}

// replaceID names an id wherever it can stand: in hex, in decimal, and in the
// bytes of a protobuf message.
func replaceID(text string, id uint64, name string) string {
	wire := string(binary.AppendUvarint(nil, id))
	for _, form := range []string{fmt.Sprintf("%016x", id), fmt.Sprintf("%x", id), strconv.FormatUint(id, 10), wire} {
		text = strings.ReplaceAll(text, form, name)
	}
	return text
}

// showLeaseKey decodes a key of lock and elect, which ends in the lease's id.
func showLeaseKey(field string) string {
	b, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(strings.TrimPrefix(field, `"key":"`), `"`))
	if err != nil || !regexp.MustCompile(`/[0-9a-f]{15,16}$`).Match(b) {
		return field
	}
	return `"key":"` + string(b) + `"`
}

func looseTable(text string) string {
	text = regexp.MustCompile(`─+`).ReplaceAllString(text, "─")
	return regexp.MustCompile(` +`).ReplaceAllString(text, " ")
}

// plainLog returns a JSON log line without time, stack and the number of the
// attempt.
func plainLog(line string) (string, bool) {
	var fields map[string]any
	if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &fields) != nil || fields["level"] == nil {
		return "", false
	}
	for _, name := range []string{"ts", "attempt"} {
		delete(fields, name)
	}
	if fields["stacktrace"] != nil {
		fields["stacktrace"] = "<stack>"
	}
	b, err := json.Marshal(fields) // sorts the keys
	return string(b) + "\n", err == nil
}
