//go:build !windows

package parity

import "syscall"

// noTerminal starts a program in a session of its own, so that it finds no
// terminal to ask for a password on.
func noTerminal() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
