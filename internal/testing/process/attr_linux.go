package process

import "syscall"

// the parent's death is the child's, however the parent died
func attr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
