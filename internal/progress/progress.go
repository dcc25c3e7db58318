// Package progress shows how far a long transfer is: a line that redraws itself
// on a terminal, a line now and then in a log.
package progress

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/etcdkit/etcdkit/internal/output"
)

// Func is told how far a job is, in bytes. A total of 0 or less is unknown.
// It may be called often and from several goroutines.
type Func func(done, total int64)

// Discard is a Func for whoever does not want to know.
func Discard(int64, int64) {}

const (
	redraw  = 100 * time.Millisecond // as often as an eye follows
	logLine = 30 * time.Second       // short enough to see life, long enough for a short cron mail
	// settle is how long a rate must have been observed before it is shown.
	settle = time.Second
	// eraseLine tells a terminal to begin the line anew.
	eraseLine = "\r\x1b[K"
)

// A Meter tells one job's progress to a writer.
type Meter struct {
	w    io.Writer
	live bool
	now  func() time.Time
	job  string

	mu          sync.Mutex
	start, last time.Time
	drawn       bool
}

// To returns a Meter that tells job's progress to w: redrawn in place when w is
// a live terminal, else one line every 30 seconds.
func To(w io.Writer, live bool, now func() time.Time, job string) *Meter {
	t := now()
	return &Meter{w: w, live: live, now: now, job: job, start: t, last: t}
}

// Update is the meter's Func.
func (m *Meter) Update(done, total int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	every := logLine
	if m.live {
		every = redraw
	}
	t := m.now()
	if t.Sub(m.last) < every {
		return
	}
	m.last = t
	line := m.job + ": " + describe(done, total, t.Sub(m.start))
	if m.live {
		m.drawn = true
		output.Raw(m.w, eraseLine)
		fmt.Fprint(m.w, line)
		return
	}
	fmt.Fprintln(m.w, line)
}

// Done removes the live line, so that what follows starts on a clean one.
func (m *Meter) Done() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.drawn {
		output.Raw(m.w, eraseLine)
		m.drawn = false
	}
}

// describe words one state of a transfer: bytes, share, rate and time left, as
// far as they are known.
func describe(done, total int64, took time.Duration) string {
	s := humanize.IBytes(uint64(max(done, 0)))
	if total > 0 {
		s += fmt.Sprintf(" of %s (%d%%)", humanize.IBytes(uint64(total)), min(done*100/total, 100))
	}
	if took < settle || done <= 0 {
		return s
	}
	rate := float64(done) / took.Seconds()
	s += fmt.Sprintf(", %s/s", humanize.IBytes(uint64(rate)))
	if total > done {
		left := time.Duration(float64(total-done) / rate * float64(time.Second))
		s += fmt.Sprintf(", %s left", left.Round(time.Second))
	}
	return s
}
