package ctl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// txnParser reads a transaction line by line.
type txnParser struct {
	t  *tree
	in *bufio.Reader
}

// line reads one condition or request, "" at the end of a list. Natively it goes
// on while open says that a quote is.
func (p *txnParser) line(open func(string) bool) (string, error) {
	line, err := p.in.ReadString('\n')
	if p.t.upstream() {
		open = func(string) bool { return false }
	}
	for err == nil && open(line) {
		var more string
		more, err = p.in.ReadString('\n')
		line += more
	}
	switch {
	case err == nil:
		return strings.TrimSpace(line), nil
	case open(line):
		err = fmt.Errorf("a quote is not closed: %w", err)
	case !p.t.upstream() && errors.Is(err, io.EOF):
		err = fmt.Errorf("each of the three lists ends with an empty line: %w", err)
	}
	return "", errInput(err)
}

func (p *txnParser) compares() ([]clientv3.Cmp, error) {
	var all []clientv3.Cmp
	for {
		line, err := p.line(openDoubleQuote)
		if err != nil || line == "" {
			return all, err
		}
		cmp, err := parseCompare(line, p.t.upstream())
		if err != nil {
			return nil, errInput(err)
		}
		all = append(all, cmp)
	}
}

func (p *txnParser) ops(ctx context.Context) ([]clientv3.Op, error) {
	var all []clientv3.Op
	for {
		line, err := p.line(openQuote)
		if err != nil || line == "" {
			return all, err
		}
		op, err := parseOp(ctx, p.t, line)
		if err != nil {
			return nil, err
		}
		all = append(all, op)
	}
}

// parseOp reads a request as the command line of get, put or del.
func parseOp(ctx context.Context, t *tree, line string) (clientv3.Op, error) {
	args, err := splitWords(line, t.upstream())
	if err != nil {
		return clientv3.Op{}, errInput(err)
	}
	if len(args) < 2 {
		return clientv3.Op{}, errInput(fmt.Errorf("invalid txn compare request: %s", line))
	}
	var (
		op    clientv3.Op
		found bool
		opErr error
	)
	take := func(build func(args []string) (clientv3.Op, error)) func(*cobra.Command, []string) error {
		return func(_ *cobra.Command, args []string) error {
			op, opErr = build(args)
			found = true
			return nil
		}
	}
	put, putOpts := putCmd(t)
	put.RunE = take(func(args []string) (clientv3.Op, error) { return putOpts.op(t, args) })
	get, getOpts := getCmd(t)
	get.RunE = take(func(args []string) (clientv3.Op, error) {
		op, _, err := getOpts.op(t, args)
		return op, err
	})
	del, delOpts := delCmd(t)
	del.RunE = take(func(args []string) (clientv3.Op, error) { return delOpts.op(ctx, t, args) })
	root := &cobra.Command{SilenceErrors: true, SilenceUsage: !t.upstream()}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetOut(t.Err) // where upstream's usage goes
	root.SetErr(t.Err)
	for _, cmd := range []*cobra.Command{put, get, del} {
		cmd.GroupID = ""
		root.AddCommand(cmd)
	}
	root.SetArgs(args)
	if err := root.ExecuteContext(ctx); err != nil || !found {
		return op, errInput(fmt.Errorf("invalid txn request: %s", line))
	}
	return op, opErr
}

// parseCompare reads a condition: TARGET("KEY") OP "VALUE".
func parseCompare(line string, upstream bool) (clientv3.Cmp, error) {
	target, rest, ok := strings.Cut(line, "(")
	if !ok {
		return clientv3.Cmp{}, fmt.Errorf("malformed comparison: %s", line)
	}
	if !upstream {
		rest = escapeNewlines(rest)
	}
	var key, op, val string
	n, err := fmt.Sscanf(rest, "%q) %s %q", &key, &op, &val)
	if n != 3 {
		return clientv3.Cmp{}, fmt.Errorf("malformed comparison: %s; got %s(%q) %s %q", line, target, key, op, val)
	}
	if err != nil {
		return clientv3.Cmp{}, fmt.Errorf("malformed comparison: %s (%w)", line, err)
	}
	of, value, err := compareTarget(target, key, val)
	switch {
	case errors.Is(err, errTarget):
		return clientv3.Cmp{}, fmt.Errorf("malformed comparison: %s (unknown target %s)", line, target)
	case err != nil:
		return clientv3.Cmp{}, fmt.Errorf("invalid txn compare request: %s", line)
	}
	switch op {
	case "=", "!=", "<", ">":
		return clientv3.Compare(of, op, value), nil
	}
	// The client library panics at any other.
	return clientv3.Cmp{}, fmt.Errorf("malformed comparison: %s (unknown operator %s: =, !=, < and > are)", line, op)
}

// errTarget says that a condition is about something a key does not have.
var errTarget = errors.New("unknown target")

// compareTarget returns what of the key is compared, and the value in its type.
func compareTarget(target, key, val string) (clientv3.Cmp, any, error) {
	number := func(cmp clientv3.Cmp, base int) (clientv3.Cmp, any, error) {
		n, err := strconv.ParseInt(val, base, 64)
		return cmp, n, err
	}
	switch target {
	case "ver", "version":
		return number(clientv3.Version(key), 10)
	case "c", "create":
		return number(clientv3.CreateRevision(key), 10)
	case "m", "mod":
		return number(clientv3.ModRevision(key), 10)
	case "lease":
		return number(clientv3.LeaseValue(key), 16)
	case "val", "value":
		return clientv3.Value(key), val, nil
	}
	return clientv3.Cmp{}, nil, errTarget
}
