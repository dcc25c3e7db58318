package ctl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/etcd"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/mirror"
	"github.com/etcdkit/etcdkit/internal/output"
)

const mirrorHelp = `Makes the keys under --prefix the same at another cluster, and then follows their
changes until a signal ends it. Leases are not copied.

With --checkpoint the next run goes on where this one has stopped. The file belongs to
the two clusters and the prefixes; with others it is refused, and so is a source whose
revision went backwards, because it was restored. When the changes since the checkpoint
have been compacted away, all keys are compared again.

Keys at the destination that the source does not have stay, unless --delete-extra is
given. A destination that holds keys already is confirmed first where it is the whole
keyspace or Kubernetes' prefix.

A transaction of the source is made in one transaction, unless it has more than
--max-txn-ops changes or 1 MiB: then it is split, and is not atomic.

When a cluster does not answer, this waits, reconnects and goes on; after
--give-up-after it ends with exit code 1.

  etcdkit make-mirror --prefix /app/ --checkpoint app.mirror https://other:2379

Exit codes: 1 failed, 2 wrong usage, 5 refused: the checkpoint does not fit, the source
went backwards, or not confirmed; 129, 130, 131, 143 ended by a signal, with the checkpoint
written.`

// nativeMirror is what etcdkit's make-mirror can do beyond upstream's.
type nativeMirror struct {
	checkpoint  string
	deleteExtra bool
	giveUp      time.Duration
}

func (n *nativeMirror) bind(fs *pflag.FlagSet) {
	fs.StringVar(&n.checkpoint, "checkpoint", "", "file that remembers how far the mirror has come")
	fs.BoolVar(&n.deleteExtra, "delete-extra", false, "delete keys at the destination that the source does not have, after showing their number")
	fs.DurationVar(&n.giveUp, "give-up-after", 5*time.Minute, "end when a cluster has not answered for so long (0: never)")
}

func runNativeMirror(ctx context.Context, t *tree, args []string, opts mirrorOptions) error {
	if len(args) != 1 {
		return badArgs("make-mirror takes one destination argument")
	}
	if err := opts.check(); err != nil {
		return err
	}
	from, err := t.client(ctx)
	if err != nil {
		return fmt.Errorf("source: %w", err)
	}
	defer from.Close()
	dest, err := opts.destination(t, args[0])
	if err != nil {
		return err
	}
	to, err := etcd.Dial(ctx, dest)
	if err != nil {
		return fmt.Errorf("destination: %w", err)
	}
	defer to.Close()
	m := &mirror.Mirror{
		From: from, To: to, Prefix: opts.prefix, DestPrefix: opts.target(), Rev: opts.rev,
		Checkpoint: opts.native.checkpoint, MaxTxnOps: int(max(opts.maxTxnOps, 1)), DeleteExtra: opts.native.deleteExtra,
		ConfirmDelete: func(n int) error {
			return t.Confirm(fmt.Sprintf("delete %d keys at the destination that the source does not have?", n))
		},
		Timeout: t.Global.CommandTimeout, GiveUp: opts.native.giveUp, Note: t.Note,
	}
	resumes, err := m.Prepare(ctx)
	if at, ok := errors.AsType[*mirror.DestinationError](err); ok && ctx.Err() == nil {
		return aboutDestination(etcd.Diagnose(ctx, dest, at.Err))
	}
	if err != nil {
		return mirrorError(err)
	}
	if !resumes {
		if err := t.guardMirror(ctx, to, opts.target()); err != nil {
			return err
		}
	}
	return mirrorError(m.Run(ctx))
}

func (o *mirrorOptions) check() error {
	switch {
	case o.noDestPrefix && o.destPrefix != "":
		return badArgs("`--dest-prefix` and `--no-dest-prefix` cannot be set at the same time, choose one")
	case o.rev < 0:
		return cli.Usagef("--rev %d is not a revision", o.rev)
	}
	return nil
}

// target is what the prefix becomes at the destination.
func (o *mirrorOptions) target() string {
	if o.destPrefix == "" && !o.noDestPrefix {
		return o.prefix
	}
	return o.destPrefix
}

// mirrorError gives the refusals of a mirror their exit code and a next step.
func mirrorError(err error) error {
	switch {
	case errors.Is(err, mirror.ErrLost):
		// In its own words: a look at the source's endpoints, which errors of
		// connections get, could not tell what the destination's are about.
		return hint.With(errors.New(err.Error()), "a run with the same --checkpoint goes on where this one has stopped")
	case errors.Is(err, mirror.ErrWentBack):
		return cli.Guard(hint.With(err, "the source was restored: look at both clusters, then begin anew without the checkpoint file"))
	case errors.Is(err, mirror.ErrCheckpoint):
		return cli.Guard(hint.With(err, "give each mirror a checkpoint file of its own"))
	}
	return err
}

// aboutDestination keeps the words of err alone: a look at the source's
// endpoints, which errors of connections get, could not tell what they mean.
func aboutDestination(err error) error {
	told := fmt.Errorf("destination: %s", err.Error()) // not wrapped on purpose
	if next := hint.Of(err); next != "" {
		return hint.With(told, "%s", next)
	}
	return told
}

// guardMirror asks before keys are written over, where that is the whole
// keyspace or touches objects of Kubernetes. A destination that holds nothing
// has nothing to lose.
func (t *tree) guardMirror(ctx context.Context, to *clientv3.Client, prefix string) error {
	ctx, cancel := t.Timeout(ctx)
	defer cancel()
	key, opts := keyRange([]string{prefix}, true, false)
	resp, err := to.Get(ctx, key, append(opts, clientv3.WithCountOnly())...)
	if err != nil {
		return fmt.Errorf("destination: %w", err)
	}
	op := clientv3.OpDelete(key, opts...) // as dangerous, and of the same range
	what := ""
	switch {
	case resp.Count == 0:
	case wholeKeyspace(op):
		what = "the whole keyspace"
	default:
		if what, err = kubeWords(kubePrefixIn(ctx, to, nil, op.KeyBytes(), op.RangeBytes())); err != nil {
			return fmt.Errorf("destination: %w", err)
		}
	}
	if what == "" {
		return nil
	}
	return t.Confirm(fmt.Sprintf("write over %d keys of the destination, cluster %s: %s?", resp.Count, output.ID(resp.Header.ClusterId), what))
}
