package parity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// defaultBound is generous: upstream's own timeouts end a line long before, and
// what runs on is ended by Until or Meanwhile.
const defaultBound = time.Minute

// drainBound is how long what a line printed may take to be read after its end:
// longer than on the busiest machine, as the rest of it is lost then.
const drainBound = 15 * time.Second

// side is one of the two programs with its cluster and working directory.
type side struct {
	bin     string
	dir     string
	cluster *cluster

	prepared map[string]bool // the files that were there before the first line

	mu       sync.Mutex
	captured map[string]string
}

// start fills the working directory and starts the side's cluster.
func (s *side) start(t testing.TB, sc Scenario, etcd string) {
	t.Helper()
	s.dir = filepath.Join(t.TempDir(), "work")
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if sc.Prepare != nil {
		sc.Prepare(t, s.dir)
	}
	files, err := s.leftovers()
	if err != nil {
		t.Fatal(err)
	}
	s.prepared = map[string]bool{}
	for name := range files {
		s.prepared[name] = true
	}
	s.captured = map[string]string{}
	s.cluster = startCluster(t, etcd, filepath.Dir(s.dir), sc)
}

// both runs the line on both sides at once.
func both(ctx context.Context, sides [2]*side, line Line) [2]outcome {
	var got [2]outcome
	var wg sync.WaitGroup
	for i, s := range sides {
		wg.Go(func() { got[i] = s.run(ctx, line) })
	}
	wg.Wait()
	return got
}

func (s *side) run(ctx context.Context, line Line) outcome {
	bound := line.Bound
	if bound == 0 {
		bound = defaultBound
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	args := make([]string, len(line.Args))
	for i, a := range line.Args {
		args[i] = s.fill(a)
	}
	var stderr bytes.Buffer
	stdout := &watched{until: s.fill(line.Until + line.StdinUntil), seen: make(chan struct{})} // a line has one of them
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, args[0]), args[1:]...)
	cmd.Args[0] = args[0]
	cmd.Dir = s.dir
	cmd.Env = s.environ(line)
	cmd.Stdin = strings.NewReader(s.fill(line.Stdin))
	if line.StdinUntil != "" {
		cmd.Stdin = io.MultiReader(cmd.Stdin, &openUntil{stdout.seen, ctx.Done()})
	}
	cmd.Stdout, cmd.Stderr = stdout, &stderr
	cmd.SysProcAttr = noTerminal()
	cmd.WaitDelay = drainBound
	if err := cmd.Start(); err != nil {
		return outcome{stderr: err.Error(), code: runsOn}
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	if line.Until != "" {
		wg.Go(func() { interrupt(cmd.Process, line.signal(), stdout.seen, done) })
	}
	for _, l := range line.Meanwhile {
		s.run(ctx, l)
	}
	if len(line.Meanwhile) > 0 {
		_ = cmd.Process.Signal(line.signal()) // one that has ended needs none
	}
	err := cmd.Wait()
	close(done)
	wg.Wait()
	s.capture(line, stdout.String())
	o := outcome{stdout: s.mask().stdout(stdout.String(), line.Sorted), stderr: s.mask().stderr(stderr.String())}
	o.code = exitCode(ctx, cmd, err)
	if o.code == runsOn {
		o.stderr = "" // whatever it had logged by then
	}
	if line.Judges {
		o = o.unjudged()
	}
	return o
}

// openUntil ends when one of the channels is closed.
type openUntil [2]<-chan struct{}

func (o *openUntil) Read([]byte) (int, error) {
	select {
	case <-o[0]:
	case <-o[1]:
	}
	return 0, io.EOF
}

// interrupt signals the process when the text it waits for was printed.
func interrupt(p *os.Process, sig syscall.Signal, seen, done <-chan struct{}) {
	select {
	case <-seen:
		_ = p.Signal(sig)
	case <-done:
	}
}

// signal is what ends a line that runs on.
func (l Line) signal() syscall.Signal {
	if l.Signal == 0 {
		return syscall.SIGINT
	}
	return l.Signal
}

// exitCode is that of the process, or the signal that killed it as a negative
// number: a shell tells both alike, but breaks its loop for an interrupt only.
func exitCode(ctx context.Context, cmd *exec.Cmd, err error) int {
	if ctx.Err() != nil {
		return runsOn
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return -int(status.Signal())
		}
	}
	return cmd.ProcessState.ExitCode()
}

// environ is small, so that nothing of the developer's reaches a program.
func (s *side) environ(line Line) []string {
	env := []string{"PATH=" + s.bin + ":/usr/local/bin:/usr/bin:/bin", "HOME=" + s.dir, "TMPDIR=" + s.dir}
	if line.Args[0] == "etcdctl" && !strings.Contains(strings.Join(line.Args, " "), "--endpoints") {
		env = append(env, "ETCDCTL_ENDPOINTS="+s.fill("{ep1}"))
	}
	for _, e := range line.Env {
		env = append(env, s.fill(e))
	}
	return env
}

// fill replaces {NAME}.
func (s *side) fill(text string) string {
	if !strings.Contains(text, "{") {
		return text
	}
	for name, value := range s.cluster.names() {
		text = strings.ReplaceAll(text, "{"+name+"}", value)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, value := range s.captured {
		text = strings.ReplaceAll(text, "{"+name+"}", value)
	}
	return text
}

// capture keeps what the line is to be remembered for.
func (s *side) capture(line Line, stdout string) {
	if line.Capture == "" {
		return
	}
	pattern := line.CaptureBy
	if pattern == "" {
		pattern = `\b([0-9a-f]{15,16})\b`
	}
	found := regexp.MustCompile(pattern).FindStringSubmatch(stdout)
	if len(found) < 2 {
		return // seen by the comparison, and by the lines that need it
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.captured[line.Capture] = found[1]
}

func (s *side) mask() mask {
	words := [][2]string{{s.dir, "$WORK"}, {filepath.Dir(s.dir), "$DATA"}}
	for i := range max(1, len(s.cluster.members)) {
		ep := s.fill(fmt.Sprintf("{ep%d}", i+1))
		words = append(words, [2]string{ep, fmt.Sprintf("{ep%d}", i+1)}, [2]string{host(ep), fmt.Sprintf("{host%d}", i+1)})
	}
	for i, m := range s.cluster.members {
		words = append(words, [2]string{m.peer, fmt.Sprintf("{peer%d}", i+1)})
	}
	words = append(words, [2]string{s.cluster.dead, "{dead}"}, [2]string{host(s.cluster.dead), "{deadhost}"})
	ids := s.cluster.ids()
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, value := range s.captured {
		if id, err := strconv.ParseUint(value, 16, 64); err == nil {
			ids[id] = "<" + name + ">"
		}
	}
	return mask{ids: ids, words: words}
}

func host(url string) string { return url[strings.Index(url, "://")+len("://"):] }

// watched keeps what is written and tells when a text has come.
type watched struct {
	until string
	seen  chan struct{}

	mu   sync.Mutex
	buf  bytes.Buffer
	told bool
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf.Write(p)
	if !w.told && w.until != "" && strings.Contains(w.buf.String(), w.until) {
		w.told = true
		close(w.seen)
	}
	return len(p), nil
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}
