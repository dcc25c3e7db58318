//go:build !windows

package ctl

import (
	"os"
	"syscall"
)

// childCode returns a command's exit code as a shell would: 128 and the signal
// where a signal ended it.
func childCode(s *os.ProcessState) int {
	if status, ok := s.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return s.ExitCode()
}

// stopChild passes a signal on.
func stopChild(p *os.Process, number syscall.Signal) error { return p.Signal(number) }
