package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

// asStress has the test's binary be the program.
const asStress = "ETCDKIT_TEST_STRESS"

func TestMain(m *testing.M) {
	if os.Getenv(asStress) != "" || os.Getenv(loadVariable) != "" {
		main()
	}
	os.Exit(m.Run())
}

// stress starts the program beside light loads, with a command that would run
// for long, and returns the processes of the loads.
func stress(t *testing.T) (cmd *exec.Cmd, loads []string) {
	t.Helper()
	cmd = exec.CommandContext(t.Context(), os.Args[0], "-runs", "1", "-cpu", "1", "--", "sleep", "600")
	cmd.Env = append(os.Environ(), asStress+"=1", "TMPDIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(strings.TrimRight(line, "]\n"), "[")
	if loads = strings.Fields(list); len(loads) != 2 {
		t.Fatalf("%q names the loads %q, want two", line, loads)
	}
	return cmd, loads
}

func TestLoadsEndWithTheProgramHoweverThatEnds(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			cmd, loads := stress(t)
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			err := cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); sig != syscall.SIGKILL && code != exitInterrupted {
				t.Errorf("exit code %d, %v; want %d", code, err, exitInterrupted)
			}
			etcdtest.Until(t, fmt.Sprintf("the end of the loads %v", loads), func(context.Context) bool {
				for _, pid := range loads {
					stat, err := os.ReadFile("/proc/" + pid + "/stat")
					if err == nil && !strings.Contains(string(stat), ") Z ") { // nobody may reap it in a container
						return false
					}
				}
				return true
			})
		})
	}
}

func TestARunThatFailsFailsAll(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]int{"true": 0, "false": 1, "/no/such/program": 1} {
		if got := run([]string{"-runs", "2", "-cpu", "0", "--", command}); got != want {
			t.Errorf("%s: exit code %d, want %d", command, got, want)
		}
	}
}
