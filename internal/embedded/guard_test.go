package embedded

import (
	"errors"
	"testing"

	"go.uber.org/zap/zapcore"
)

func TestWhatComesAfterAFailureIsDiscarded(t *testing.T) {
	f, late, discarded := NewFailure(), make(chan struct{}), make(chan int)
	fail := func() { f.OnWrite(&zapcore.CheckedEntry{Entry: zapcore.Entry{Message: "disk full"}}, nil) }
	go fail() // which ends its goroutine
	_, err := Guard(f, func() (int, error) { <-late; return 7, nil }, func(n int) { discarded <- n })
	if err == nil || err.Error() != "etcd: disk full" {
		t.Errorf("got %v, want the failure", err)
	}
	close(late)
	if n := <-discarded; n != 7 {
		t.Errorf("%d was discarded, want 7", n)
	}
}

func TestACallWithoutAFailureIsReturned(t *testing.T) {
	want := errors.New("refused")
	n, err := Guard(NewFailure(), func() (int, error) { return 7, want }, func(int) { t.Error("discarded") })
	if n != 7 || !errors.Is(err, want) {
		t.Errorf("got %d, %v", n, err)
	}
}
