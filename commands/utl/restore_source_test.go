//go:build unix

package utl

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

var errSignal = errors.New("a signal")

// A pipe that nobody writes into, or no longer, does not outlive a signal.
func TestAPipeEndsWithTheContext(t *testing.T) {
	t.Parallel()
	for name, written := range map[string]string{"nobody writes": "", "the writer is stuck": "a beginning"} {
		t.Run(name, func(t *testing.T) {
			fifo := filepath.Join(t.TempDir(), "fifo")
			if err := syscall.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			if written == "" {
				time.AfterFunc(10*time.Millisecond, func() { cancel(errSignal) })
				if src, err := openPipe(ctx, fifo); !errors.Is(err, errSignal) {
					t.Fatalf("got %v, %v; want the signal", src, err)
				}
				// Frees the one that still waits for a writer.
				w, err := os.OpenFile(fifo, os.O_WRONLY, 0)
				if err := errors.Join(err, w.Close()); err != nil {
					t.Fatal(err)
				}
				return
			}
			w, err := os.OpenFile(fifo, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			src, err := openPipe(ctx, fifo)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.WriteString(written); err != nil {
				t.Fatal(err)
			}
			b := make([]byte, len(written))
			if _, err := io.ReadFull(src.Reader, b); err != nil || string(b) != written {
				t.Fatalf("read %q, %v", b, err)
			}
			time.AfterFunc(10*time.Millisecond, func() { cancel(errSignal) })
			if _, err := src.Reader.Read(b); !errors.Is(err, errSignal) {
				t.Errorf("read ended with %v, want the signal", err)
			}
			if err := src.close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Under upstream's name the file is opened late, and a pipe ends no later.
func TestAPipeOfEtcdutlEndsWithTheContext(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := os.OpenFile(fifo, os.O_RDWR, 0) // a writer who is stuck
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	src := &lazyFile{ctx: ctx, path: fifo}
	f, err := src.File()
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(10*time.Millisecond, func() { cancel(errSignal) })
	if _, err := f.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read ended with %v", err)
	}
	if err := src.close(); err != nil {
		t.Error(err)
	}
}
