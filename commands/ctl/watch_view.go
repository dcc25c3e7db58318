package ctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/output"
)

// watchView shows what a watch receives and runs a command for each event.
type watchView struct {
	t         *tree
	exec      []string
	cancelled error // why the server ended the watch
}

// printing keeps the responses of watches that run side by side apart.
type printing struct{ sync.Mutex }

func (v *watchView) show(ctx context.Context, events clientv3.WatchChan) error {
	for resp := range events {
		if err := v.print(resp); err != nil {
			return err
		}
		for _, event := range resp.Events {
			if len(v.exec) == 0 {
				break
			}
			if err := v.run(ctx, resp.Header.GetRevision(), event); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *watchView) print(resp clientv3.WatchResponse) error {
	v.t.printing.Lock()
	defer v.t.printing.Unlock()
	if resp.Canceled {
		v.cancelled = compactedHint(resp)
		if v.t.upstream() {
			fmt.Fprintf(v.t.Err, "watch was canceled (%v)\n", resp.Err())
		}
	}
	if !v.t.upstream() {
		return v.printNative(resp)
	}
	if resp.IsProgressNotify() {
		fmt.Fprintf(v.t.Out, "progress notify: %d\n", resp.Header.GetRevision())
	}
	return v.t.print(v.t.watchResult(resp))
}

// printNative shows a response a line in json, a document each in yaml, and what
// is no event only where it does not get between events.
func (v *watchView) printNative(resp clientv3.WatchResponse) error {
	r := v.t.watchResult(resp)
	switch v.t.Format {
	case output.JSON:
		line, err := withHexIDs(r.json)
		if err != nil {
			return err
		}
		return compactJSON(v.t.Out, line)
	case output.YAML:
		if _, err := io.WriteString(v.t.Out, "---\n"); err != nil {
			return err
		}
	case output.Simple, output.Table:
		if resp.IsProgressNotify() {
			v.t.Note("progress: all events up to revision %d have been seen", resp.Header.GetRevision())
		}
	}
	return v.t.print(r)
}

// run starts the command for an event and waits for it.
func (v *watchView) run(ctx context.Context, rev int64, event *clientv3.Event) error {
	cmd := exec.CommandContext(ctx, v.exec[0], v.exec[1:]...)
	cmd.Env = append(cmd.Env, v.t.Environ...)
	cmd.Env = append(cmd.Env,
		fmt.Sprintf("ETCD_WATCH_REVISION=%d", rev),
		fmt.Sprintf("ETCD_WATCH_EVENT_TYPE=%q", event.Type),
		fmt.Sprintf("ETCD_WATCH_KEY=%q", event.Kv.GetKey()),
		fmt.Sprintf("ETCD_WATCH_VALUE=%q", event.Kv.GetValue()))
	cmd.Stdout, cmd.Stderr = output.Unguarded(v.t.Out), output.Unguarded(v.t.Err)
	err := cmd.Run()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if v.t.upstream() {
		fmt.Fprintf(v.t.Err, "command %q error (%v)\n", v.exec, err)
		return &codeError{exitError, errTold}
	}
	return childError(err, v.exec)
}

// childError turns the failure of a command run for the user into an error that
// ends with the command's exit code.
func childError(err error, words []string) error {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return fmt.Errorf("run %q: %w", words[0], err)
	}
	return &cli.ChildExit{Code: childCode(exit.ProcessState)}
}

func (t *tree) watchResult(resp clientv3.WatchResponse) result {
	v := t.kvView()
	return result{
		json: &resp,
		proto: &pb.WatchResponse{
			Header: resp.Header, Events: resp.Events, CompactRevision: resp.CompactRevision,
			Canceled: resp.Canceled, Created: resp.Created,
		},
		simple: func(w io.Writer) { v.watchSimple(w, resp.Events) },
		exact:  true,
		fields: func(w io.Writer) { v.watchFields(w, resp) },
	}
}

func (v kvView) watchSimple(w io.Writer, events []*clientv3.Event) {
	for _, e := range events {
		fmt.Fprintln(w, e.Type)
		if e.PrevKv != nil {
			v.pair(w, e.PrevKv)
		}
		v.pair(w, e.Kv)
	}
}

func (v kvView) watchFields(w io.Writer, resp clientv3.WatchResponse) {
	v.header(w, resp.Header)
	for _, e := range resp.Events {
		fmt.Fprintln(w, `"Type" :`, e.Type)
		if e.PrevKv != nil {
			v.fields(w, "Prev", e.PrevKv)
		}
		v.fields(w, "", e.Kv)
	}
}
