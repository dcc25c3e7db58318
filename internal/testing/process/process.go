// Package process runs servers as processes for tests. A process never
// outlives its test, not even when the test's own process is killed.
package process

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// wait bounds what a healthy machine does within seconds.
const wait = 90 * time.Second

// HeedSignals has the processes that are started from here on take the signals
// that this one was told to ignore, by nohup(1) or in a script's background.
// Tests that send them call it first.
func HeedSignals() {
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s) // what is caught has its default effect in a new program
		}
	}
}

// Command describes the process to start.
type Command struct {
	Path string
	Args []string
	Env  []string // the whole environment; nil means the test's own
	Log  string   // file that standard output and error are appended to
}

// Process is a running process.
type Process struct {
	t    testing.TB
	name string
	log  string
	cmd  *exec.Cmd
	done chan struct{}
}

// Start starts the process. It is killed when the test ends, if it has not
// ended by then.
func Start(t testing.TB, c Command) *Process {
	t.Helper()
	log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	// Not CommandContext: the test's context ends before its cleanups run.
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = c.Env
	cmd.SysProcAttr = attr()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &Process{t: t, name: filepath.Base(c.Path), log: c.Log, cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-p.done
	})
	return p
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Kill ends the process at once, as a power cut would.
func (p *Process) Kill() {
	p.t.Helper()
	p.end((*os.Process).Kill)
}

// Stop asks the process to end, and waits until it has.
func (p *Process) Stop() {
	p.t.Helper()
	p.end(terminate)
}

func (p *Process) end(signal func(*os.Process) error) {
	p.t.Helper()
	if err := signal(p.cmd.Process); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatalf("end %s: %v", p.name, err)
	}
	select {
	case <-p.done:
	case <-time.After(wait):
		p.t.Fatalf("%s did not end within %s", p.name, wait)
	}
}

// Pause halts the process without ending it: its connections stay open, and
// nothing is answered any more once it returns.
func (p *Process) Pause() {
	p.t.Helper()
	if err := pause(p.cmd.Process); err != nil {
		p.t.Fatalf("pause %s: %v", p.name, err)
	}
	p.Await(func(context.Context) bool {
		ok, err := halted(p.cmd.Process)
		if err != nil {
			p.t.Fatalf("pause %s: %v", p.name, err)
		}
		return ok
	})
}

// Resume lets a paused process go on.
func (p *Process) Resume() {
	p.t.Helper()
	if err := resume(p.cmd.Process); err != nil {
		p.t.Fatalf("resume %s: %v", p.name, err)
	}
}

// Log returns what the process has written so far.
func (p *Process) Log() string {
	p.t.Helper()
	out, err := os.ReadFile(p.log)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(out)
}

// Await polls until ready holds, and fails the test if the process ends
// before, or if it takes too long.
func (p *Process) Await(ready func(context.Context) bool) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), wait)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !ready(ctx) {
		select {
		case <-p.done:
			p.t.Fatalf("%s ended by itself; its last lines:\n%s", p.name, p.tail())
		case <-ctx.Done():
			p.t.Fatalf("%s is not ready: %v; its last lines:\n%s", p.name, context.Cause(ctx), p.tail())
		case <-tick.C:
		}
	}
}

func (p *Process) tail() string {
	const most = 20
	lines := strings.Split(strings.TrimSpace(p.Log()), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}
