package parity

import (
	"fmt"
	"regexp"
	"strings"
)

// runsOn is the exit code of a line that was still running at its bound.
const runsOn = -1000

// outcome is what can be seen of a line that ran.
type outcome struct {
	stdout, stderr string
	code           int
}

// unjudged returns the outcome without what a judging command found: the lines
// say what was judged, not how it came out.
func (o outcome) unjudged() outcome {
	for _, r := range [][2]string{
		{`(?m)^(PASS: Throughput is|FAIL: Throughput too low:) \d+ writes/s$`, "<throughput>"},
		{`(?m)^(PASS: Slowest request took|Slowest request took too long:) .*$`, "<slowest>"},
		{`(?m)^(PASS: Stddev is|Stddev too high:) .*$`, "<deviation>"},
		{`(?m)^PASS: Approximate system memory used : -?\d+\.\d\d MB\.$`, "<memory>"},
		{`(?m)^(Compact(ing|ed) with revision) \d+$`, "$1 <n>"},
		{`(?m)^(PASS|FAIL)$`, "<verdict>"},
	} {
		o.stdout = regexp.MustCompile(r[0]).ReplaceAllString(o.stdout, r[1])
	}
	o.stderr = regexp.MustCompile(`(?m)^[^\n]*\d+ / \d+ [^\n]*\n?`).ReplaceAllString(o.stderr, "")
	if strings.Contains(o.stdout, "<verdict>") && o.code == 1 {
		o.code = 0
	}
	return o
}

// shownBytes bounds one stream in a report.
const shownBytes = 4000

// String shows the outcome for a report.
func (o outcome) String() string {
	var b strings.Builder
	show := func(prefix, text string) {
		if len(text) > shownBytes {
			text = text[:shownBytes] + "..."
		}
		for line := range strings.Lines(text) {
			b.WriteString(prefix + strings.TrimSuffix(line, "\n") + "\n")
			if !strings.HasSuffix(line, "\n") {
				b.WriteString(prefix + "(no newline at the end)\n")
			}
		}
	}
	show("1> ", o.stdout)
	show("2> ", o.stderr)
	if o.code == runsOn {
		return b.String() + "[runs on]\n"
	}
	return fmt.Sprintf("%s[%d]\n", b.String(), o.code)
}
