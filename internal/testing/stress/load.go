package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
)

// loadVariable tells a process that it is a load, and which.
const loadVariable = "ETCDKIT_STRESS_LOAD"

const (
	loadProcessor = "processor"
	loadDisk      = "disk"
)

// diskBlock is written and synced again and again, up to diskMost.
const (
	diskBlock = 4 << 20
	diskMost  = 256 << 20
)

// loads are the processes that load the machine.
type loads []*exec.Cmd

// startLoads starts so many processes that keep a processor busy, and one that
// keeps the disk busy. What it started is returned with an error, too.
func startLoads(busy int) (loads, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var all loads
	for i := range busy + 1 {
		kind := loadProcessor
		if i == busy {
			kind = loadDisk
		}
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), loadVariable+"="+kind)
		cmd.Stderr = os.Stderr
		// Its standard input ends with this process, and that ends it.
		if _, err := cmd.StdinPipe(); err != nil {
			return all, err
		}
		if err := cmd.Start(); err != nil {
			return all, err
		}
		all = append(all, cmd)
	}
	return all, nil
}

func (l loads) pids() []int {
	pids := make([]int, len(l))
	for i, cmd := range l {
		pids[i] = cmd.Process.Pid
	}
	return pids
}

// stop ends the loads and waits until they are gone.
func (l loads) stop() {
	for _, cmd := range l {
		_ = cmd.Process.Kill() // one that ended by itself is gone, too
	}
	for _, cmd := range l {
		_ = cmd.Wait()
	}
}

// load keeps the machine busy until standard input ends.
func load(kind string) int {
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	var err error
	switch kind {
	case loadProcessor:
		spin(ended)
	case loadDisk:
		err = writeAndSync(ended)
	default:
		err = fmt.Errorf("no load is called %q", kind)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "stress: load the %s: %v\n", kind, err)
		return 1
	}
	return 0
}

func spin(ended <-chan struct{}) {
	sum := uint64(1)
	for {
		select {
		case <-ended:
			return
		default:
		}
		for i := range uint64(1 << 20) {
			sum = sum*31 + i
		}
	}
}

// writeAndSync writes a file of the folder for temporary files and syncs it
// after each block.
func writeAndSync(ended <-chan struct{}) error {
	f, err := os.CreateTemp("", "etcdkit-stress-*")
	if err != nil {
		return err
	}
	defer f.Close()
	// Without its name it goes with the process; where that cannot be, at the end.
	if os.Remove(f.Name()) != nil {
		defer os.Remove(f.Name())
	}
	block := make([]byte, diskBlock)
	for at := int64(0); ; at = (at + diskBlock) % diskMost {
		select {
		case <-ended:
			return nil
		default:
		}
		if _, err := f.WriteAt(block, at); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
	}
}
