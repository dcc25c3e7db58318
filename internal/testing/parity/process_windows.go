package parity

import "syscall"

func noTerminal() *syscall.SysProcAttr { return nil }
