package ctl

import (
	"os"
	"syscall"
)

// childCode returns a command's exit code.
func childCode(s *os.ProcessState) int { return s.ExitCode() }

// stopChild ends a command. There are no signals to pass on.
func stopChild(p *os.Process, _ syscall.Signal) error { return p.Kill() }
