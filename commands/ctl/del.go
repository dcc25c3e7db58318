package ctl

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/output"
)

type delOptions struct {
	prefix, fromKey, isRange, prevKV bool
}

const delHelp = `Deletes one key, the keys from <key> up to but not including [range_end], those
that begin with <key> (--prefix), or all from <key> on (--from-key), and prints how
many there were.

A range that is the whole keyspace or touches Kubernetes' objects is shown with its
count and confirmed first; without a terminal it needs --yes. Nothing brings deleted
keys back: take a snapshot before.

  etcdkit del colour
  etcdkit del --prefix /app/ --prev-kv

Exit codes: 0 deleted, also when there was no such key; 1 failed; 2 wrong usage;
5 not confirmed.`

func newDelCmd(t *tree) *cobra.Command {
	cmd, opts := delCmd(t)
	cmd.RunE = t.run(func(ctx context.Context, args []string) error { return runDel(ctx, t, args, *opts) })
	return t.offer(cmd, output.Fields, output.Protobuf)
}

// delCmd is the command without what it does, which is another thing in txn.
func delCmd(t *tree) (*cobra.Command, *delOptions) {
	opts := &delOptions{}
	cmd := &cobra.Command{
		Use:     "del [options] <key> [range_end]",
		Short:   "Removes the specified key or range of keys [key, range_end)",
		Long:    t.long("", delHelp),
		GroupID: groupKV,
	}
	opts.bind(cmd.Flags())
	return cmd, opts
}

func (o *delOptions) bind(fs *pflag.FlagSet) {
	fs.BoolVar(&o.prefix, "prefix", false, "delete keys with matching prefix")
	fs.BoolVar(&o.prevKV, "prev-kv", false, "return deleted key-value pairs")
	fs.BoolVar(&o.fromKey, "from-key", false, "delete keys that are greater than or equal to the given key using byte compare")
	fs.BoolVar(&o.isRange, "range", false, "delete range of keys")
}

func runDel(ctx context.Context, t *tree, args []string, opts delOptions) error {
	op, err := opts.op(ctx, t, args)
	if err != nil {
		return err
	}
	resp, err := t.write(ctx, op, false)
	if err != nil {
		return err
	}
	return t.print(t.delResult((*pb.DeleteRangeResponse)(resp.Del())))
}

// op returns the request. Upstream gives two seconds to think about a range
// whose end is an argument.
func (o *delOptions) op(ctx context.Context, t *tree, args []string) (clientv3.Op, error) {
	if len(args) == 0 || len(args) > 2 {
		return clientv3.Op{}, badArgs("del command needs one argument as key and an optional argument as range_end")
	}
	if o.prefix && o.fromKey {
		return clientv3.Op{}, errPrefixAndFromKey()
	}
	if len(args) > 1 {
		if o.prefix || o.fromKey {
			return clientv3.Op{}, errRangeAndPrefix()
		}
		if err := o.pause(ctx, t, args[0], args[1]); err != nil {
			return clientv3.Op{}, err
		}
	}
	key, opts := keyRange(args, o.prefix, o.fromKey)
	if o.prevKV {
		opts = append(opts, clientv3.WithPrevKV())
	}
	return clientv3.OpDelete(key, opts...), nil
}

func (o *delOptions) pause(ctx context.Context, t *tree, from, to string) error {
	if o.isRange || !t.Dialect.PausesBeforeRangeDelete() {
		return nil
	}
	fmt.Fprintf(t.Err, "Warning: Keys between %q and %q will be deleted. Please interrupt the command within next 2 seconds to cancel. "+
		"You can provide `--range` flag to avoid the delay.\n", from, to)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(2 * time.Second):
		return nil
	}
}

func (t *tree) delResult(r *pb.DeleteRangeResponse) result {
	v := t.kvView()
	return result{
		json: r, proto: r,
		simple: func(w io.Writer) { v.delSimple(w, r) },
		exact:  true,
		fields: func(w io.Writer) { v.delFields(w, r) },
	}
}

func (v kvView) delSimple(w io.Writer, r *pb.DeleteRangeResponse) {
	fmt.Fprintln(w, r.GetDeleted())
	for _, kv := range r.GetPrevKvs() {
		v.pair(w, kv)
	}
}

func (v kvView) delFields(w io.Writer, r *pb.DeleteRangeResponse) {
	v.header(w, r.GetHeader())
	fmt.Fprintln(w, `"Deleted" :`, r.GetDeleted())
	for _, kv := range r.GetPrevKvs() {
		v.fields(w, "Prev", kv)
	}
}
