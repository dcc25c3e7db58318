package ctl

import (
	"context"
	"io"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/output"
)

type putOptions struct {
	lease                            string
	prevKV, ignoreValue, ignoreLease bool
}

const putUpstreamHelp = `
Puts the given key into the store.

When <value> begins with '-', <value> is interpreted as a flag.
Insert '--' for workaround:

$ put <key> -- <value>
$ put -- <key> <value>

If <value> isn't given as a command line argument and '--ignore-value' is not specified,
this command tries to read the value from standard input.

If <lease> isn't given as a command line argument and '--ignore-lease' is not specified,
this command tries to read the value from standard input.

For example,
$ cat file | put <key>
will store the content of the file to <key>.
`

const putHelp = `Stores a value under a key. Without a value on the command line it is standard
input, byte for byte. A value that begins with a dash goes after "--".

  etcdkit put colour blue
  etcdkit put -- colour -1
  etcdkit put certificate < cert.pem

Exit codes: 0 stored, 1 failed, 2 wrong usage, 5 refused by a guard.`

func newPutCmd(t *tree) *cobra.Command {
	cmd, opts := putCmd(t)
	cmd.RunE = t.run(func(ctx context.Context, args []string) error { return runPut(ctx, t, args, *opts) })
	return t.offer(cmd, output.Fields, output.Protobuf)
}

// putCmd is the command without what it does, which is another thing in txn.
func putCmd(t *tree) (*cobra.Command, *putOptions) {
	opts := &putOptions{}
	cmd := &cobra.Command{
		Use:     "put [options] <key> <value> (<value> can also be given from stdin)",
		Short:   "Puts the given key into the store",
		Long:    t.long(putUpstreamHelp, putHelp),
		GroupID: groupKV,
	}
	opts.bind(cmd.Flags())
	return cmd, opts
}

func (o *putOptions) bind(fs *pflag.FlagSet) {
	fs.StringVar(&o.lease, "lease", "0", "lease ID (in hexadecimal) to attach to the key")
	fs.BoolVar(&o.prevKV, "prev-kv", false, "return the previous key-value pair before modification")
	fs.BoolVar(&o.ignoreValue, "ignore-value", false, "updates the key using its current value")
	fs.BoolVar(&o.ignoreLease, "ignore-lease", false, "updates the key using its current lease")
}

func runPut(ctx context.Context, t *tree, args []string, opts putOptions) error {
	op, err := opts.op(t, args)
	if err != nil {
		return err
	}
	resp, err := t.write(ctx, op, len(args) == 1 && !opts.ignoreValue)
	if err != nil {
		return err
	}
	return t.print(t.putResult((*pb.PutResponse)(resp.Put())))
}

// op returns the request. The value comes from standard input if it is no
// argument.
func (o *putOptions) op(t *tree, args []string) (clientv3.Op, error) {
	if len(args) == 0 {
		return clientv3.Op{}, badArgs("put command needs 1 argument and input from stdin or 2 arguments")
	}
	if o.ignoreValue && len(args) > 1 {
		return clientv3.Op{}, badArgs("put command needs only 1 argument when 'ignore-value' is set")
	}
	if err := t.tooMany(args, 2); err != nil {
		return clientv3.Op{}, err
	}
	if err := t.passwordFirst(); err != nil {
		return clientv3.Op{}, err
	}
	value, err := o.value(t.Input(), args)
	if err != nil {
		return clientv3.Op{}, err
	}
	id, err := strconv.ParseInt(o.lease, 16, 64)
	if err != nil {
		return clientv3.Op{}, badArgs("bad lease ID (%w), expecting ID in Hex", err)
	}
	var opts []clientv3.OpOption
	if id != 0 {
		opts = append(opts, clientv3.WithLease(clientv3.LeaseID(id)))
	}
	if o.prevKV {
		opts = append(opts, clientv3.WithPrevKV())
	}
	if o.ignoreValue {
		opts = append(opts, clientv3.WithIgnoreValue())
	}
	if o.ignoreLease {
		opts = append(opts, clientv3.WithIgnoreLease())
	}
	return clientv3.OpPut(args[0], value, opts...), nil
}

func (o *putOptions) value(stdin io.Reader, args []string) (string, error) {
	switch {
	case o.ignoreValue:
		return "", nil
	case len(args) > 1:
		return args[1], nil
	}
	b, err := io.ReadAll(stdin)
	if cli.Signal(err) != 0 {
		return "", err
	}
	if err != nil || len(b) == 0 {
		return "", badArgs("put command needs 1 argument and input from stdin or 2 arguments")
	}
	return string(b), nil
}

func (t *tree) putResult(r *pb.PutResponse) result {
	v := t.kvView()
	return result{
		json: r, proto: r,
		simple: func(w io.Writer) { v.putSimple(w, r) },
		exact:  true,
		fields: func(w io.Writer) { v.putFields(w, r) },
	}
}

func (v kvView) putSimple(w io.Writer, r *pb.PutResponse) {
	_, _ = io.WriteString(w, "OK\n")
	if r.GetPrevKv() != nil {
		v.pair(w, r.GetPrevKv())
	}
}

func (v kvView) putFields(w io.Writer, r *pb.PutResponse) {
	v.header(w, r.GetHeader())
	if r.GetPrevKv() != nil {
		v.fields(w, "Prev", r.GetPrevKv())
	}
}
