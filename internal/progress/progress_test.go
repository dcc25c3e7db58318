package progress

import (
	"strings"
	"testing"
	"time"
)

func TestDescribe(t *testing.T) {
	for name, tc := range map[string]struct {
		done, total int64
		took        time.Duration
		want        string
	}{
		"too early for a rate":         {1 << 20, 4 << 20, 0, "1.0 MiB of 4.0 MiB (25%)"},
		"rate and time left":           {1 << 20, 4 << 20, 2 * time.Second, "1.0 MiB of 4.0 MiB (25%), 512 KiB/s, 6s left"},
		"unknown total has no share":   {1 << 20, 0, 2 * time.Second, "1.0 MiB, 512 KiB/s"},
		"nothing yet has no rate":      {0, 4 << 20, 5 * time.Second, "0 B of 4.0 MiB (0%)"},
		"more than announced is 100 %": {5 << 20, 4 << 20, 0, "5.0 MiB of 4.0 MiB (100%)"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := describe(tc.done, tc.total, tc.took); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestMeter(t *testing.T) {
	for name, tc := range map[string]struct {
		live  bool
		steps []time.Duration
		want  string
	}{
		"a log gets a line every 30 s":         {false, []time.Duration{time.Second, 28 * time.Second, time.Second}, "save: 3 B of 4 B (75%), 0 B/s, 10s left\n"},
		"a terminal line is redrawn and wiped": {true, []time.Duration{50 * time.Millisecond, 60 * time.Millisecond}, "\r\x1b[Ksave: 2 B of 4 B (50%)\r\x1b[K"},
		"a short job says nothing":             {true, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			at := time.Unix(0, 0)
			m := To(&out, tc.live, func() time.Time { return at }, "save")
			for i, step := range tc.steps {
				at = at.Add(step)
				m.Update(int64(i+1), 4)
			}
			m.Done()
			if got := out.String(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
