package parity

import (
	"fmt"
	"strings"
)

// runsOn is the exit code of a line that was still running at its bound.
const runsOn = -1

// outcome is what can be seen of a line that ran.
type outcome struct {
	stdout, stderr string
	code           int
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
