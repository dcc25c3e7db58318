package ctl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/output"
)

const watchHelp = `Shows each change of a key, of a range of keys, or of the keys with a prefix, until a
signal ends it. With --rev it begins in the past. The key may also come from the
variables ETCDKIT_WATCH_KEY and ETCDKIT_WATCH_RANGE_END (or ETCDCTL_...).

A command after "--" is run for each event, with ETCD_WATCH_REVISION,
ETCD_WATCH_EVENT_TYPE, ETCD_WATCH_KEY and ETCD_WATCH_VALUE in its environment, the
last three quoted as in Go. When it fails, the watch ends with its exit code.

  etcdkit watch --prefix /app/ --rev 1
  etcdkit watch config -- systemctl reload app

With --interactive each line of standard input is a watch of its own ("watch [flags]
key [range_end] [-- command]") or "progress".

Exit codes: 1 failed, also when the revision was compacted; 2 wrong usage; 129, 130,
143 ended by a signal; the command's.`

func newWatchCmd(t *tree) *cobra.Command {
	var opts watchOptions
	cmd := &cobra.Command{
		Use:     "watch [options] [key or prefix] [range_end] [--] [exec-command arg1 arg2 ...]",
		Short:   "Watches events stream on keys or prefixes",
		Long:    t.long("", watchHelp),
		GroupID: groupKV,
		RunE:    t.run(func(ctx context.Context, args []string) error { return runWatch(ctx, t, args, opts) }),
	}
	opts.bind(cmd.Flags())
	return t.offer(cmd, output.Fields, output.Protobuf)
}

func runWatch(ctx context.Context, t *tree, args []string, opts watchOptions) error {
	envKey, envRange := t.variable("WATCH_KEY"), t.variable("WATCH_RANGE_END")
	if envKey == "" && envRange != "" {
		return badArgs("ETCDCTL_WATCH_KEY is empty but got ETCDCTL_WATCH_RANGE_END=%q", envRange)
	}
	if opts.interactive {
		return runWatchInteractive(ctx, t, envKey, envRange)
	}
	line := watchLine{before: args, envKey: envKey, envRange: envRange, strict: true, upstream: t.upstream()}
	if dash := t.cmd.ArgsLenAtDash(); dash >= 0 {
		line.separator, line.before, line.after = true, args[:dash], args[dash:]
	}
	target, err := line.target()
	if err != nil {
		return &codeError{exitBadArgs, err}
	}
	if len(target.keys) == 0 && (!t.upstream() || t.cmd.Flags().NFlag() == 0) {
		return &codeError{exitBadArgs, errWatchArgs}
	}
	client, err := t.client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	key, watchOpts, err := opts.options(t, target.keys)
	if err != nil {
		return &codeError{exitBadArgs, err}
	}
	view := &watchView{t: t, exec: target.exec}
	if err := view.show(ctx, client.Watch(clientv3.WithRequireLeader(ctx), key, watchOpts...)); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !t.upstream() && view.cancelled != nil {
		return view.cancelled
	}
	return code(exitInterrupted, "watch is canceled by the server")
}

// variable returns a setting that has no flag. Natively etcdkit's own name for
// it comes first.
func (t *tree) variable(name string) string {
	if !t.upstream() {
		if value := t.Getenv("ETCDKIT_" + name); value != "" {
			return value
		}
	}
	return t.Getenv("ETCDCTL_" + name)
}

// session is the interactive form of watch.
type session struct {
	t                *tree
	client           *clientv3.Client
	envKey, envRange string
	watches          int
	failed           chan error // by watches, the first of which ends all
}

func runWatchInteractive(ctx context.Context, t *tree, envKey, envRange string) error {
	client, err := t.client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	s := &session{t: t, client: client, envKey: envKey, envRange: envRange, failed: make(chan error, 1)}
	inputs := make(chan input)
	go readLines(ctx, t.In, inputs)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-s.failed:
			return err
		case in := <-inputs:
			done, err := s.handle(ctx, in)
			if err != nil {
				return err
			}
			if done {
				inputs = nil // standard input has ended, the watches go on
			}
		}
	}
}

// input is a line of standard input, or how it ended.
type input struct {
	line string
	err  error
}

func readLines(ctx context.Context, r io.Reader, to chan<- input) {
	reader := bufio.NewReader(r)
	for {
		line, err := reader.ReadString('\n')
		select {
		case to <- input{line, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// handle does what a line says. It returns true when there will be no more.
func (s *session) handle(ctx context.Context, in input) (done bool, err error) {
	if in.err != nil {
		if errors.Is(in.err, io.EOF) && !s.t.upstream() && s.watches > 0 {
			return true, nil
		}
		return true, code(exitInvalidInput, "error reading watch request line: %w", in.err)
	}
	line := strings.TrimSuffix(in.line, "\n")
	words, err := splitWords(line, s.t.upstream())
	if err != nil {
		return true, errInput(err)
	}
	switch {
	case len(words) == 0:
		fmt.Fprintf(s.t.Err, "Invalid command: %s (watch and progress supported)\n", line)
	case words[0] == "progress":
		return false, s.client.RequestProgress(clientv3.WithRequireLeader(ctx))
	case words[0] != "watch":
		fmt.Fprintf(s.t.Err, "Invalid command %s (only support watch)\n", line)
	case len(words) < 2 && s.envKey == "":
		fmt.Fprintf(s.t.Err, "Invalid command %s (command type or key is not provided)\n", line)
	default:
		return false, s.watch(ctx, line, words[1:])
	}
	return false, nil
}

func (s *session) watch(ctx context.Context, line string, words []string) error {
	target, opts, err := parseWatchLine(words, s.envKey, s.envRange, s.t.upstream())
	if err != nil {
		return &codeError{exitBadArgs, err}
	}
	key, watchOpts, err := opts.options(s.t, target.keys)
	if err != nil {
		fmt.Fprintf(s.t.Err, "Invalid command %s (%v)\n", line, err)
		return nil
	}
	s.watches++
	events := s.client.Watch(clientv3.WithRequireLeader(ctx), key, watchOpts...)
	view := &watchView{t: s.t, exec: target.exec}
	go func() {
		if err := view.show(ctx, events); err != nil {
			select {
			case s.failed <- err:
			default:
			}
		}
	}()
	return nil
}

// compactedHint says what to do about a watch that began too far in the past.
func compactedHint(resp clientv3.WatchResponse) error {
	err := fmt.Errorf("watch was canceled: %w", resp.Err())
	if resp.CompactRevision > 0 {
		return hint.With(err, "the oldest revision that can still be watched is %d: give --rev %d", resp.CompactRevision, resp.CompactRevision)
	}
	return err
}
