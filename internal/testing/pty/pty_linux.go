// Package pty runs programs on a terminal of their own, as a person would.
package pty

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds every wait, with room for a loaded machine.
const patience = time.Minute

// A Terminal has a program running on it.
type Terminal struct {
	t    testing.TB
	file *os.File

	mu   sync.Mutex
	news *sync.Cond
	text strings.Builder
	done bool
}

// Start runs cmd on a new terminal of so many columns, until the test ends.
func Start(t testing.TB, columns int, cmd *exec.Cmd) *Terminal {
	t.Helper()
	ours, theirs, err := open(columns)
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	term := &Terminal{t: t, file: ours}
	term.news = sync.NewCond(&term.mu)
	read := make(chan struct{})
	go func() { defer close(read); term.read() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = ours.Close()
		<-read
	})
	return term
}

// open makes a pair of terminal ends.
func open(columns int) (ours, theirs *os.File, err error) {
	ours, err = os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	fd := int(ours.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	err = errors.Join(err, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0),
		unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: uint16(columns)}))
	if err != nil {
		return nil, nil, errors.Join(err, ours.Close())
	}
	theirs, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, errors.Join(err, ours.Close())
	}
	return ours, theirs, nil
}

func (p *Terminal) read() {
	b := make([]byte, 4096)
	for {
		n, err := p.file.Read(b)
		p.mu.Lock()
		p.text.Write(b[:n])
		p.done = err != nil // the program has ended
		p.mu.Unlock()
		p.news.Broadcast()
		if err != nil {
			return
		}
	}
}

// Type sends keys.
func (p *Terminal) Type(keys string) {
	p.t.Helper()
	if _, err := p.file.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
}

// Wait waits until the terminal has shown want, and fails when it does not in
// time or the program ends before.
func (p *Terminal) Wait(want string) {
	p.t.Helper()
	if !p.wait(func() bool { return strings.Contains(p.text.String(), want) }) {
		p.t.Fatalf("the terminal does not show %q:\n%s", want, p.Text())
	}
}

// End waits for the program's end and returns all that it showed.
func (p *Terminal) End() string {
	p.t.Helper()
	if !p.wait(func() bool { return p.done }) {
		p.t.Fatalf("the program has not ended:\n%s", p.Text())
	}
	return p.Text()
}

func (p *Terminal) wait(until func() bool) bool {
	deadline := time.Now().Add(patience)
	wake := time.AfterFunc(patience, p.news.Broadcast)
	defer wake.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for !until() {
		if p.done || time.Now().After(deadline) {
			return until()
		}
		p.news.Wait()
	}
	return true
}

// Raw returns what was shown so far, byte for byte.
func (p *Terminal) Raw() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// Text returns what was shown so far, without colours and movements.
func (p *Terminal) Text() string {
	plain := regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\x1b\][^\x07]*\x07`).ReplaceAllString(p.Raw(), "")
	return strings.ReplaceAll(plain, "\r\n", "\n")
}
