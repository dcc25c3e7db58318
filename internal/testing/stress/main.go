// Stress runs a command several times beside a load on the processors and the
// disk. Tests that wait for time in place of a condition fail there:
//
//	stress [-runs 5] [-cpu 8] [-within 2h] -- COMMAND [ARG...]
//
// The loads are processes of their own. Each ends by itself when this process
// is gone, however that ended.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// exitInterrupted is what a shell expects of a program that Ctrl-C ended.
const exitInterrupted = 130

func main() {
	if kind := os.Getenv(loadVariable); kind != "" {
		os.Exit(load(kind))
	}
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	fs := flag.NewFlagSet("stress", flag.ContinueOnError)
	runs := fs.Int("runs", 5, "how often to run the command")
	busy := fs.Int("cpu", 8, "how many processes keep a processor busy")
	within := fs.Duration("within", 2*time.Hour, "how long one run may take")
	if err := fs.Parse(args); err != nil {
		return 2
	}
	if fs.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "stress: no command to run")
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	loads, err := startLoads(*busy)
	defer loads.stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "stress: start a load: %v\n", err)
		return 1
	}
	fmt.Printf("=== %d processes load the processors, one the disk: %v\n", *busy, loads.pids())
	failed := 0
	for i := range *runs {
		start := time.Now()
		err := once(ctx, *within, fs.Args())
		if ctx.Err() != nil {
			fmt.Fprintln(os.Stderr, "stress: interrupted")
			return exitInterrupted
		}
		outcome := "ok"
		if err != nil {
			outcome = fmt.Sprintf("FAILED: %v", err)
			failed++
		}
		fmt.Printf("=== run %d of %d: %s, %d s\n", i+1, *runs, outcome, int(time.Since(start).Seconds()))
	}
	if failed > 0 {
		fmt.Printf("=== %d of %d runs failed\n", failed, *runs)
		return 1
	}
	return 0
}

// once runs the command. What it started ends with it.
func once(ctx context.Context, within time.Duration, command []string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("it took longer than %s", within))
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = group()
	cmd.Cancel = func() error { return killGroup(cmd.Process) }
	if err := cmd.Run(); err != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	return nil
}
