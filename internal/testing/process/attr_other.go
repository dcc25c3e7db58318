//go:build !linux

package process

import "syscall"

func attr() *syscall.SysProcAttr { return nil }
