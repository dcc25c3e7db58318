package ctl

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"

	"github.com/spf13/cobra"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/output"
)

const lockHelp = `Waits for a named lock and holds it: until a signal comes, or while a command runs.
The command finds ETCD_LOCK_KEY and ETCD_LOCK_REV in its environment, and its exit
code is returned. The lock is released however this ends; should this program be
killed, or lose the cluster, the lock is free again after --ttl seconds.

When the cluster is lost for that long, someone else may hold the lock: the command
is told to end (SIGTERM), and the exit code is 1.

  etcdkit lock backup -- etcdkit snapshot save /backup/

The end of standard input means nothing.

Exit codes: 1 failed, or the lock was lost; 2 wrong usage; 129, 130, 131, 143 ended by a
signal; the command's.`

func newLockCmd(t *tree) *cobra.Command {
	ttl := 10
	cmd := &cobra.Command{
		Use:     "lock <lockname> [exec-command arg1 arg2 ...]",
		Short:   "Acquires a named lock",
		Long:    t.long("", lockHelp),
		GroupID: groupConcurrency,
		RunE:    t.run(func(ctx context.Context, args []string) error { return runLock(ctx, t, args, ttl) }),
	}
	cmd.Flags().IntVar(&ttl, "ttl", ttl, "timeout for session")
	return t.offer(cmd, output.Fields, output.Protobuf)
}

func runLock(ctx context.Context, t *tree, args []string, ttl int) error {
	if len(args) == 0 {
		return badArgs("lock takes a lock name argument and an optional command to execute")
	}
	if ttl <= 0 && !t.upstream() {
		return cli.Usagef("--ttl %d: a number of seconds from 1 on", ttl)
	}
	return t.inSession(ctx, func(ctx context.Context, client *clientv3.Client, s *concurrency.Session) error {
		m := concurrency.NewMutex(s, args[0])
		if err := m.Lock(ctx); err != nil {
			return t.notGot(ctx, err)
		}
		if len(args) > 1 {
			err := t.runLocked(ctx, s, m, args[1:])
			unlockErr := release(ctx, m.Unlock)
			if err != nil {
				return err
			}
			return unlockErr
		}
		return t.hold(ctx, client, s, m)
	}, concurrency.WithTTL(ttl))
}

// hold shows the lock's key and keeps the lock until ctx ends.
func (t *tree) hold(ctx context.Context, client *clientv3.Client, s *concurrency.Session, m *concurrency.Mutex) error {
	resp, err := client.Get(ctx, m.Key())
	if err != nil {
		return errors.Join(err, release(ctx, m.Unlock))
	}
	if len(resp.Kvs) == 0 {
		return errors.New("lock lost on init")
	}
	if err := t.print(t.getResult((*pb.RangeResponse)(resp))); err != nil {
		return t.releaseAfter(ctx, err, m.Unlock)
	}
	select {
	case <-ctx.Done():
		if err := release(ctx, m.Unlock); err != nil {
			return err
		}
		return t.ended(ctx)
	case <-s.Done():
		return errors.New("session expired")
	}
}

// runLocked runs a command while the lock is held. Natively it has our standard
// input, is passed the signals that would end us, and is ended with the lock.
func (t *tree) runLocked(ctx context.Context, s *concurrency.Session, m *concurrency.Mutex, words []string) error {
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = append(cmd.Env, "ETCD_LOCK_KEY="+m.Key(), fmt.Sprintf("ETCD_LOCK_REV=%d", m.Header().Revision))
	cmd.Env = append(cmd.Env, t.Environ...)
	cmd.Stdout, cmd.Stderr = output.Unguarded(t.Out), output.Unguarded(t.Err)
	if t.upstream() {
		err := cmd.Run()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return &codeError{exit.ExitCode(), err}
		}
		return err
	}
	cmd.Stdin = t.In
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("run %q: %w", words[0], err)
	}
	lost := make(chan struct{})
	done := make(chan struct{})
	go func() {
		select {
		case <-s.Done():
			close(lost)
			_ = stopChild(cmd.Process, syscall.SIGTERM)
		case <-ctx.Done():
			// A terminal has sent its interrupt to the command as well.
			if number := cli.Signal(context.Cause(ctx)); number != syscall.SIGINT {
				_ = stopChild(cmd.Process, number)
			}
		case <-done:
		}
	}()
	err := cmd.Wait()
	close(done)
	select {
	case <-lost:
		return errors.New("the lock was lost while the command ran, and the command was told to end")
	default:
	}
	if err != nil {
		return childError(err, words)
	}
	return nil
}
