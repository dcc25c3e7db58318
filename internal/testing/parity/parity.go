// Package parity runs command lines through upstream's etcdctl and etcdutl and
// through ours under the same names, each against a real etcd of its own, and
// compares exit code, standard output and standard error.
//
// What chance decides is made the same on both sides: the clusters' ids are
// known beforehand and written as names, and durations, sizes and the like are
// masked. Nothing else is forgiven, log lines included.
package parity

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/testing/certs"
)

// A Line is one command line. In its words {ep} stands for all client URLs,
// {ep1} for that of member 1, {m1} for its id in hex, {dead} for an endpoint at
// which nobody listens, and {NAME} for what an earlier line captured.
type Line struct {
	Args  []string // the program's name first
	Stdin string
	Env   []string // NAME=value, besides ETCDCTL_ENDPOINTS={ep1}

	// Meanwhile runs on the same side once the line is under way. Then the line,
	// if it runs on, is sent Signal.
	Meanwhile []Line
	// Until sends Signal to a line that runs on, when its output contains this.
	Until  string
	Signal syscall.Signal // SIGINT if it is 0
	// StdinUntil keeps standard input open until the output contains this,
	// where its end would race with what is printed.
	StdinUntil string

	// Capture is the name that from here on, in braces, stands for the first id
	// printed, or for what the group of CaptureBy finds.
	Capture, CaptureBy string

	Judges bool          // what it judges is up to the machine: PASS and FAIL count as the same, and the bar on standard error is left out
	Sorted bool          // upstream leaves the order of the output to chance: its parts are compared as a bag
	Bound  time.Duration // after which the line counts as running on; 0 means a minute
}

// L is the line that a shell would make of s: words in single or double quotes keep spaces.
func L(s string) Line { return Line{Args: split(s)} }

// Lines is L for each text.
func Lines(all ...string) []Line {
	lines := make([]Line, len(all))
	for i, s := range all {
		lines[i] = L(s)
	}
	return lines
}

// With returns the line with a change.
func (l Line) With(change func(*Line)) Line {
	change(&l)
	return l
}

// changesNothing tells a line that may run twice and say the same, though
// others follow it: a hurried one may be the busy machine's fault.
func (l Line) changesNothing() bool {
	if len(l.Args) < 3 || l.Args[0] != "etcdctl" {
		return false
	}
	switch l.Args[1] {
	case "get", "endpoint", "defrag":
		return true
	}
	return l.Args[2] == "list" || l.Args[2] == "status"
}

// String is the line as one would type it.
func (l Line) String() string {
	var b strings.Builder
	for _, e := range l.Env {
		b.WriteString(quote(e) + " ")
	}
	for i, w := range l.Args {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(quote(w))
	}
	if l.Stdin != "" {
		fmt.Fprintf(&b, " <<< %q", l.Stdin)
	}
	return b.String()
}

// quote shows a word so that its end and odd bytes can be seen.
func quote(w string) string {
	plain := w != "" && !strings.ContainsFunc(w, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`'"\`, r) })
	if plain {
		return w
	}
	return fmt.Sprintf("%q", w)
}

// split cuts s at spaces outside of quotes.
func split(s string) []string {
	var words []string
	var word strings.Builder
	var open rune
	started := false
	for _, r := range s {
		switch {
		case open != 0 && r == open:
			open = 0
		case open != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			open, started = r, true
		case r == ' ':
			if started {
				words = append(words, word.String())
			}
			word.Reset()
			started = false
		default:
			word.WriteRune(r)
			started = true
		}
	}
	if started {
		words = append(words, word.String())
	}
	return words
}

// A Scenario is lines that run one after the other, on both sides at once.
type Scenario struct {
	Members int      // of each side's cluster; 0 means none
	Apart   bool     // no line minds the others, so that they may run side by side; without members it is taken for granted
	Server  []string // more flags for the servers
	// CA, where it is set, vouches for the servers, and they ask clients for a
	// certificate of its.
	CA *certs.CA
	// Prepare fills the working directory of a side before the first line.
	Prepare func(t testing.TB, dir string)
	Lines   []Line
	// Leftovers compares also which files the lines leave in the working directory.
	Leftovers bool
}

// A Difference is one that is wanted, by one of the deviations that
// docs/differences.md lists for upstream's names.
type Difference struct {
	Line   string // as Line.String shows it
	Reason string
	Code   int    // ours, or AnyCode
	Stderr string // part of ours

	// Match and Upstream stand in place of Line for lines that chance makes: the
	// lines that Match finds are excused where they differ and Upstream is in
	// what upstream writes to standard error.
	Match    *regexp.Regexp
	Upstream string
}

// AnyCode is the code of a Difference that may end in more than one way.
const AnyCode = -2000

// excuses reports whether the difference is about this line and these outcomes.
func (d Difference) excuses(line Line, upstream, ours outcome) bool {
	if d.Match == nil {
		return d.Line == line.String()
	}
	return upstream != ours && d.Match.MatchString(line.String()) && strings.Contains(upstream.stderr, d.Upstream)
}

// Programs are the folders with etcdctl and etcdutl of the two sides, and the
// server that both are run against.
type Programs struct {
	Upstream, Ours string
	Etcd           string
}

// Run runs the scenario and fails the test for every line that differs,
// except where a difference is wanted.
func (s Scenario) Run(t *testing.T, p Programs, wanted []Difference) {
	t.Helper()
	t.Logf("%d command lines", len(s.Lines))
	sides := [2]*side{{bin: p.Upstream}, {bin: p.Ours}}
	for _, sd := range sides {
		sd.start(t, s, p.Etcd)
	}
	for _, sd := range sides {
		if err := sd.cluster.settle(); err != nil {
			t.Fatal(err)
		}
	}
	if s.Apart || s.Members == 0 {
		runApart(t, sides, s.Lines, wanted)
		return
	}
	for _, line := range s.Lines {
		run := both
		if line.changesNothing() {
			run = bothUnhurried
		}
		compare(t, line, run(t.Context(), sides, line), wanted)
	}
	if s.Leftovers {
		compareLeftovers(t, sides)
	}
}

// atOnce is how many independent lines run side by side: enough to keep the
// processors busy while some lines wait for a timeout.
const atOnce = 6

func runApart(t *testing.T, sides [2]*side, lines []Line, wanted []Difference) {
	t.Helper()
	results := make([][2]outcome, len(lines))
	var wg sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i, line := range lines {
		slots <- struct{}{}
		wg.Go(func() {
			results[i] = bothUnhurried(t.Context(), sides, line)
			<-slots
		})
	}
	wg.Wait()
	for i, line := range lines {
		compare(t, line, results[i], wanted)
	}
}

// bothUnhurried runs a line again, with more time, when the sides differ: on a
// busy machine a timeout may strike at another step. What really differs does so
// again.
func bothUnhurried(ctx context.Context, sides [2]*side, line Line) [2]outcome {
	got := both(ctx, sides, line)
	if got[0] != got[1] {
		got = both(ctx, sides, line.unhurried())
	}
	return got
}

// A timeout that strikes soon is lengthened in an unhurried line, up to what a
// server needs on the busiest machine. One that is to strike at once stays.
const (
	atOnceTimeout    = 100 * time.Millisecond
	unhurriedTimeout = 10 * time.Second
)

// unhurried returns the line with time to come through.
func (l Line) unhurried() Line {
	l.Bound = max(l.Bound, defaultBound)
	l.Args = slices.Clone(l.Args)
	for i, word := range l.Args {
		flag, value, _ := strings.Cut(word, "=")
		if flag != "--command-timeout" && flag != "--dial-timeout" {
			continue
		}
		if d, err := time.ParseDuration(value); err == nil && d >= atOnceTimeout && d < unhurriedTimeout {
			l.Args[i] = flag + "=" + unhurriedTimeout.String()
		}
	}
	return l
}

func compare(t *testing.T, line Line, got [2]outcome, wanted []Difference) {
	t.Helper()
	upstream, ours := got[0], got[1]
	for _, d := range wanted {
		if !d.excuses(line, upstream, ours) {
			continue
		}
		switch {
		case upstream == ours:
			t.Errorf("%s\nno longer differs, though it should: %s", line, d.Reason)
		case d.Code != AnyCode && ours.code != d.Code || !strings.Contains(ours.stderr, d.Stderr):
			t.Errorf("%s\nours\n%swant exit code %d and %q", line, ours, d.Code, d.Stderr)
		}
		return
	}
	if upstream != ours {
		t.Errorf("%s\n--- upstream\n%s+++ ours\n%s", line, upstream, ours)
	}
}
