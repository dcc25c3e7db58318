//go:build !unix

package main

import (
	"os"
	"syscall"
)

func group() *syscall.SysProcAttr { return nil }

func killGroup(p *os.Process) error { return p.Kill() }
