//go:build !windows

package commands_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

func TestAnInterruptEndsAWaitForStandardInput(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	for name, args := range map[string][]string{
		"for a value":       {"put", "a"},
		"for a transaction": {"txn"},
		"for a password":    {"user", "add", "alice", "--interactive=false"},
	} {
		t.Run(name, func(t *testing.T) {
			stdin, writer := io.Pipe()
			defer writer.Close()
			s.stdin = stdin
			ctx, cancel := context.WithCancelCause(t.Context())
			signalled(syscall.SIGINT)(cancel)
			if got := s.runIn(ctx, &lockedBuffer{}, args...); got.code != 130 {
				t.Errorf("%+v", got)
			}
		})
	}
	if n := s.count(t.Context(), "a"); n != 0 {
		t.Errorf("%d keys were written", n)
	}
}

// program starts one of the names of the test binary as a shell would. When it

// watchFrom runs a script that ends in a watch, whose first event has been shown
// when it returns.
func (s *session) watchFrom(script string) *exec.Cmd {
	s.t.Helper()
	dir := s.t.TempDir()
	if err := os.Symlink("etcdkit", filepath.Join(dir, "etcdctl")); err != nil {
		s.t.Fatal(err)
	}
	installed(s.t, dir)
	var out lockedBuffer
	cmd := exec.CommandContext(bounded(s.t), "sh", "-c", script)
	cmd.Env = []string{"HOME=" + dir, "PATH=" + dir + ":" + os.Getenv("PATH"), "ETCDCTL_ENDPOINTS=" + s.endpoint}
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = cmd.Process.Kill() })
	etcdtest.Until(s.t, "it watches", func(context.Context) bool { return strings.Contains(out.String(), "PUT") })
	return cmd
}

func TestHowSignalsEndAProcess(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	s.put("k", "v")
	for name, tc := range map[string]struct {
		script string
		send   []syscall.Signal
		killed bool
		number syscall.Signal
	}{
		"etcdkit ends in order":                  {"exec etcdkit watch k --rev 1", []syscall.Signal{syscall.SIGHUP}, false, syscall.SIGHUP},
		"etcdkit ends in order on a quit, too":   {"exec etcdkit watch k --rev 1", []syscall.Signal{syscall.SIGQUIT}, false, syscall.SIGQUIT},
		"etcdkit survives a hangup under nohup":  {"trap '' HUP; exec etcdkit watch k --rev 1", []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM}, false, syscall.SIGTERM},
		"etcdctl is killed, as upstream's":       {"exec etcdctl watch k --rev 1", []syscall.Signal{syscall.SIGTERM}, true, syscall.SIGTERM},
		"etcdctl is killed by a hangup":          {"exec etcdctl watch k --rev 1", []syscall.Signal{syscall.SIGHUP}, true, syscall.SIGHUP},
		"etcdctl in the background, of a script": {"trap '' INT; exec etcdctl watch k --rev 1", []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}, true, syscall.SIGTERM},
		"etcdctl survives a hangup under nohup":  {"trap '' HUP; exec etcdctl watch k --rev 1", []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM}, true, syscall.SIGTERM},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := s.watchFrom(tc.script)
			for _, number := range tc.send {
				if err := cmd.Process.Signal(number); err != nil {
					t.Fatal(err)
				}
				time.Sleep(20 * time.Millisecond) // signals of one moment come in any order
			}
			_ = cmd.Wait()
			status := cmd.ProcessState.Sys().(syscall.WaitStatus)
			got := status.Signal()
			if !status.Signaled() {
				got = syscall.Signal(status.ExitStatus() - 128)
			}
			if status.Signaled() != tc.killed || got != tc.number {
				t.Errorf("killed %v by %v, want %v by %v", status.Signaled(), got, tc.killed, tc.number)
			}
		})
	}
}

// A signal that we ignored would be ignored by what we run, too: its pipelines
// would complain of broken pipes.
func TestCommandsThatAreRunHaveTheirPipes(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	for _, program := range []string{"etcdkit", "etcdctl"} {
		dir := t.TempDir()
		if err := os.Symlink(installed(t, dir), filepath.Join(dir, "etcdctl")); err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		cmd := exec.CommandContext(bounded(t), filepath.Join(dir, program), "lock", "l", "--", "sh", "-c", "yes | head -n 1")
		cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "ETCDCTL_ENDPOINTS=" + s.endpoint}
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil || string(out) != "y\n" || stderr.Len() > 0 {
			t.Errorf("%s: %v, output %q, errors %q", program, err, out, stderr.String())
		}
	}
}

// A file that a flag names may be a FIFO that nobody writes to.
func TestTheFirstSignalEndsAReadThatBlocks(t *testing.T) {
	s := newSession(t)
	dir := t.TempDir()
	program := installed(t, dir)
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range [][]string{
		{"get", "k", "--user", "root", "--password-file", fifo},
		{"snapshot", "verify", dir + "/", "--identity", fifo},
		{"snapshot", "save", dir + "/", "--encrypt-to", fifo},
		{"secrets", "scan", "--encryption-config", fifo},
		{"user", "add", "bob", "--new-user-password-file", fifo},
	} {
		cmd := exec.CommandContext(bounded(t), program, line...)
		cmd.Env = []string{"HOME=" + dir, "ETCDCTL_ENDPOINTS=" + s.endpoint}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// It reads once the FIFO can be opened for writing without waiting.
		var writer int
		etcdtest.Until(t, "it reads the FIFO", func(context.Context) bool {
			var err error
			writer, err = syscall.Open(fifo, syscall.O_WRONLY|syscall.O_NONBLOCK, 0)
			return err == nil
		})
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		_ = syscall.Close(writer)
		if code := cmd.ProcessState.ExitCode(); code != 143 {
			t.Errorf("%q: exit code %d, want 143", line, code)
		}
	}
	// A configuration file must be a regular file.
	if got := s.run("--config", fifo, "version"); got.code != 2 || !strings.Contains(got.err, "not a regular file") {
		t.Errorf("a configuration in a FIFO: %+v", got)
	}
}
