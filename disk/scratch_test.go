package disk

import (
	"errors"
	"syscall"
	"testing"
	"time"
)

// fake is a file that fails after some writes, or does nothing at all.
type fake struct {
	left int
	err  error
}

func (f *fake) Write(p []byte) (int, error) {
	if f.err != nil && f.left == 0 {
		return 0, f.err
	}
	f.left--
	return len(p), nil
}
func (f *fake) Sync() error  { return nil }
func (f *fake) Close() error { return nil }

func TestAWriteThatFailsEndsTheRound(t *testing.T) {
	ended := false
	r := round{
		ops: []operation{writeAndSync(&fake{left: 3, err: syscall.ENOSPC}, blocks(10), false), writeAndSync(&fake{}, blocks(10), false)},
		end: func() error { ended = true; return nil },
	}
	_, err := r.run(t.Context(), pace{writes: 1e6, longest: time.Minute, tell: func(int64) {}})
	if !errors.Is(err, syscall.ENOSPC) || !ended {
		t.Errorf("got %v, cleaned up %v; want ENOSPC and true", err, ended)
	}
}

func TestAnInterruptedRoundDoesNotWaitForADiskThatHangs(t *testing.T) {
	stop, over := errors.New("interrupted"), make(chan struct{})
	t.Cleanup(func() { close(over) })
	hangs := func() error { <-over; return nil }
	done := make(chan struct{})
	close(done)
	answers := func() error { return nil }
	for name, tc := range map[string]struct {
		end      func() error
		done     chan struct{}
		patience time.Duration
		want     string
	}{
		"neither sync nor removal hangs": {answers, done, time.Minute, "interrupted"},
		"in a sync":                      {answers, over, time.Millisecond, "interrupted; the disk has not answered for 1ms"},
		"when files are removed":         {hangs, done, time.Millisecond, "interrupted; the disk has not answered for 1ms"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := (round{end: tc.end}).abandon(stop, tc.done, tc.patience); !errors.Is(err, stop) || err.Error() != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func TestARunningMeasurementIsNotSwept(t *testing.T) {
	dir := t.TempDir()
	s, err := folders().New(dir)
	if err != nil {
		t.Fatal(err)
	}
	if left, err := folders().Sweep(dir); err != nil || len(left) > 0 {
		t.Fatal(left, err)
	}
	if _, err := create(s, 0, 4096, false, false); err != nil {
		t.Errorf("the folder of a running measurement is gone: %v", err)
	}
	if err := s.Remove(); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkOwnOverhead is what a write costs on top of the disk's own time.
func BenchmarkOwnOverhead(b *testing.B) {
	op := writeAndSync(&fake{}, blocks(fioBlock), false)
	if _, err := repeat(b.Context(), op, pace{writes: int64(b.N), longest: time.Hour, tell: func(int64) {}}); err != nil {
		b.Fatal(err)
	}
}
