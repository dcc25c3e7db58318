//go:build unix && !linux

package main

import (
	"os"
	"syscall"
)

// group puts a command into a group of its own, so that all that it starts can
// be ended: go test leaves its tests behind when it is killed.
func group() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func killGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }
