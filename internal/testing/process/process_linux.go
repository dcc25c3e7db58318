package process

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// the parent's death is the child's, however the parent died
func attr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// halted tells whether every thread has stopped: a signal that was sent is only
// on its way, and one running thread can still answer.
func halted(p *os.Process) (bool, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.Pid))
	if err != nil {
		return false, err
	}
	for _, name := range threads {
		stat, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // the thread has ended
		}
		if err != nil {
			return false, err
		}
		// The state follows the name, which is in brackets and may hold any byte.
		_, state, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
		if !bytes.HasPrefix(state, []byte("T")) {
			return false, nil
		}
	}
	return len(threads) > 0, nil
}
