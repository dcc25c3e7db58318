package ctl

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/etcd"
	"github.com/etcdkit/etcdkit/internal/output"
)

type getOptions struct {
	consistency, order, sortBy string
	limit, rev                 int64
	prefix, fromKey            bool
	keysOnly, countOnly        bool
	valueOnly, stream          bool
	minCreate, maxCreate       int64
	minMod, maxMod             int64
	raw, null, text            bool          // native
	stallTimeout               time.Duration // native
}

const getHelp = `Reads one key, the keys from <key> up to but not including [range_end], those that
begin with <key> (--prefix), or all from <key> on (--from-key).

A large range is printed as it arrives, all of it at one revision, so that memory
stays small; it ends when the server has sent nothing for --stall-timeout. A range
that is sorted or filtered by revisions comes in one piece, in --command-timeout.

  etcdkit get --prefix /app/ --keys-only
  etcdkit get certificate --raw > cert.pem
  etcdkit get --prefix /app/ --null | xargs -0 -n2 echo

Exit codes: 0 read, also when there is no such key; 1 failed; 2 wrong usage.`

func newGetCmd(t *tree) *cobra.Command {
	cmd, opts := getCmd(t)
	if !t.upstream() {
		opts.bindNative(cmd.Flags())
	}
	cmd.RunE = t.run(func(ctx context.Context, args []string) error { return runGet(ctx, t, args, *opts) })
	return t.offer(cmd, output.Fields, output.Protobuf)
}

// getCmd is the command without what it does, which is another thing in txn.
func getCmd(t *tree) (*cobra.Command, *getOptions) {
	opts := &getOptions{}
	cmd := &cobra.Command{
		Use:     "get [options] <key> [range_end]",
		Short:   "Gets the key or a range of keys",
		Long:    t.long("", getHelp),
		GroupID: groupKV,
	}
	opts.bind(cmd.Flags())
	app.CompleteValues(cmd, "consistency", "l", "s")
	app.CompleteValues(cmd, "order", "ASCEND", "DESCEND")
	app.CompleteValues(cmd, "sort-by", "CREATE", "KEY", "MODIFY", "VALUE", "VERSION")
	return cmd, opts
}

func (o *getOptions) bind(fs *pflag.FlagSet) {
	fs.StringVar(&o.consistency, "consistency", "l", "Linearizable(l) or Serializable(s)")
	fs.StringVar(&o.order, "order", "", "Order of results; ASCEND or DESCEND (ASCEND by default)")
	fs.StringVar(&o.sortBy, "sort-by", "", "Sort target; CREATE, KEY, MODIFY, VALUE, or VERSION")
	fs.Int64Var(&o.limit, "limit", 0, "Maximum number of results")
	fs.BoolVar(&o.prefix, "prefix", false, "Get keys with matching prefix")
	fs.BoolVar(&o.fromKey, "from-key", false, "Get keys that are greater than or equal to the given key using byte compare")
	fs.Int64Var(&o.rev, "rev", 0, "Specify the kv revision")
	fs.BoolVar(&o.keysOnly, "keys-only", false, "Get only the keys")
	fs.BoolVar(&o.countOnly, "count-only", false, "Get only the count")
	fs.BoolVar(&o.valueOnly, "print-value-only", false, `Only write values when using the "simple" output format`)
	fs.Int64Var(&o.minCreate, "min-create-rev", 0, "Minimum create revision")
	fs.Int64Var(&o.maxCreate, "max-create-rev", 0, "Maximum create revision")
	fs.Int64Var(&o.minMod, "min-mod-rev", 0, "Minimum modification revision")
	fs.Int64Var(&o.maxMod, "max-mod-rev", 0, "Maximum modification revision")
	fs.BoolVar(&o.stream, "stream", false, "Use the RangeStream RPC")
}

func (o *getOptions) bindNative(fs *pflag.FlagSet) {
	fs.BoolVar(&o.raw, "raw", false, "write the values' bytes and nothing else, not even a newline")
	fs.BoolVarP(&o.null, "null", "0", false, "end each key and value with a NUL byte instead of a newline")
	fs.BoolVar(&o.text, "text", false, "json, yaml: add key_text and value_text where the bytes are valid UTF-8")
	fs.DurationVar(&o.stallTimeout, "stall-timeout", 30*time.Second, "give up a large range when the server has sent nothing for so long")
}

func runGet(ctx context.Context, t *tree, args []string, opts getOptions) error {
	op, sort, err := opts.op(t, args)
	if err != nil {
		return err
	}
	if err := opts.checkNative(t); err != nil {
		return err
	}
	reqCtx, cancel := t.Timeout(ctx)
	defer cancel()
	timeout := max(t.Global.CommandTimeout, 1)
	client, err := t.client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	view := newGetView(t, opts)
	req := etcd.RangeRequest(op)
	req.SortOrder, req.SortTarget = pb.RangeRequest_SortOrder(sort.Order), pb.RangeRequest_SortTarget(sort.Target)
	maxRecv := t.Global.Conn.MaxRecvBytes
	// Upstream's users who bound the message mean the one that holds it all.
	if etcd.Readable(req) && t.Global.Conn.Fits(req) && (maxRecv == 0 || !t.upstream()) {
		if !t.upstream() {
			timeout = opts.stallTimeout
		}
		reader := etcd.Reader{Client: client, Timeout: timeout, MaxRecvBytes: maxRecv, StreamOnly: opts.stream}
		return view.end(reader.Read(ctx, req, view.sink()))
	}
	if opts.stream {
		return view.whole(etcd.CollectStream(reqCtx, client, req, maxRecv))
	}
	resp, err := client.Do(reqCtx, op)
	return view.whole((*pb.RangeResponse)(resp.Get()), err)
}

// checkNative refuses flags that do not go with the format. Upstream does so
// after the request, see getView.
func (o *getOptions) checkNative(t *tree) error {
	switch {
	case t.upstream():
		return nil
	case (o.raw || o.null || o.valueOnly) && t.Format != output.Simple:
		return cli.Usagef("--raw, --null and --print-value-only are for -w simple")
	case o.raw && (o.null || o.keysOnly || o.countOnly):
		return cli.Usagef("--raw writes values: it does not go with --null, --keys-only and --count-only")
	case o.keysOnly && o.valueOnly:
		return cli.Usagef("--keys-only and --print-value-only leave nothing to print")
	case o.text && t.Format != output.JSON && t.Format != output.YAML:
		return cli.Usagef("--text is for -w json and -w yaml")
	case o.raw && t.OutTTY:
		return cli.Usagef("--raw writes binary data, and standard output is a terminal: redirect it")
	}
	return nil
}

// op returns the request, and the order in it, which an Op does not show.
func (o *getOptions) op(t *tree, args []string) (op clientv3.Op, sort clientv3.SortOption, err error) {
	if len(args) == 0 {
		return op, sort, badArgs("get command needs one argument as key and an optional argument as range_end")
	}
	if o.prefix && o.fromKey {
		return op, sort, errPrefixAndFromKey()
	}
	if o.keysOnly && o.countOnly {
		return op, sort, badArgs("`--keys-only` and `--count-only` cannot be set at the same time, choose one")
	}
	serializable, err := isSerializable(o.consistency)
	if err != nil {
		return op, sort, err
	}
	if len(args) > 1 && (o.prefix || o.fromKey) {
		return op, sort, errRangeAndPrefix()
	}
	if err := t.tooMany(args, 2); err != nil {
		return op, sort, err
	}
	key, opts := keyRange(args, o.prefix, o.fromKey)
	opts = append(opts, clientv3.WithLimit(o.limit), clientv3.WithRev(max(o.rev, 0)))
	if serializable {
		opts = append(opts, clientv3.WithSerializable())
	}
	if sort, err = o.sort(); err != nil {
		return op, sort, err
	}
	filters, err := o.filters()
	if err != nil {
		return op, sort, err
	}
	opts = append(opts, clientv3.WithSort(sort.Target, sort.Order))
	return clientv3.OpGet(key, append(opts, filters...)...), sort, nil
}

// sort returns the order asked for. Keys come in ascending order by themselves.
func (o *getOptions) sort() (sort clientv3.SortOption, err error) {
	var ok bool
	sort.Order, ok = map[string]clientv3.SortOrder{
		"": clientv3.SortNone, "ASCEND": clientv3.SortAscend, "DESCEND": clientv3.SortDescend,
	}[strings.ToUpper(o.order)]
	if !ok {
		return sort, code(exitBadFeature, "bad sort order %v", o.order)
	}
	sort.Target, ok = map[string]clientv3.SortTarget{
		"": clientv3.SortByKey, "KEY": clientv3.SortByKey, "CREATE": clientv3.SortByCreateRevision,
		"MODIFY": clientv3.SortByModRevision, "VALUE": clientv3.SortByValue, "VERSION": clientv3.SortByVersion,
	}[strings.ToUpper(o.sortBy)]
	if !ok {
		return sort, code(exitBadFeature, "bad sort target %v", o.sortBy)
	}
	if sort.Target == clientv3.SortByKey && sort.Order == clientv3.SortAscend {
		sort.Order = clientv3.SortNone
	}
	return sort, nil
}

// filters returns what to leave out or to read of what the range holds.
func (o *getOptions) filters() ([]clientv3.OpOption, error) {
	var opts []clientv3.OpOption
	if o.keysOnly {
		opts = append(opts, clientv3.WithKeysOnly())
	}
	if o.countOnly {
		opts = append(opts, clientv3.WithCountOnly())
	}
	if o.minCreate > 0 {
		opts = append(opts, clientv3.WithMinCreateRev(o.minCreate))
	}
	if o.maxCreate > 0 {
		if o.minCreate > o.maxCreate {
			return nil, code(exitBadFeature, "getMinCreateRev(=%v) > getMaxCreateRev(=%v)", o.minCreate, o.maxCreate)
		}
		opts = append(opts, clientv3.WithMaxCreateRev(o.maxCreate))
	}
	if o.minMod > 0 {
		opts = append(opts, clientv3.WithMinModRev(o.minMod))
	}
	if o.maxMod > 0 {
		if o.minMod > o.maxMod {
			return nil, code(exitBadFeature, "getMinModRev(=%v) > getMaxModRev(=%v)", o.minMod, o.maxMod)
		}
		opts = append(opts, clientv3.WithMaxModRev(o.maxMod))
	}
	return opts, nil
}
