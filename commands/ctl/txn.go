package ctl

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/output"
)

const txnUpstreamHelp = `Txn reads multiple etcd requests from standard input and applies them as a single atomic transaction.

A transaction consists of three components:
1) a list of conditions,
2) a list of requests to apply if all the conditions are true,
3) a list of requests to apply if any condition is false.

Example interactive stdin usage:

---
etcdctl txn -i
# compares:
mod("key1") > "0"

# success requests (get, put, delete):
put key1 "overwrote-key1"

# failure requests (get, put, delete):
put key1 "created-key1"
put key2 "some extra key"
---

Refer to https://github.com/etcd-io/etcd/blob/main/etcdctl/README.md#txn-options.`

const txnHelp = `Reads a transaction from standard input: conditions, the requests to make if all of
them hold, and those to make if not. Each of the three lists ends with an empty line.

A condition is TARGET("KEY") OP "VALUE". TARGET is value, version, create, mod or
lease (in hexadecimal), OP is =, !=, < or >. A request is a get, put or del with its
arguments and flags; what is in quotes may hold spaces and newlines.

  etcdkit txn <<END
  mod("colour") = "0"

  put colour blue

  get colour

  END

It may also be JSON, as etcd's gateway takes it: {"compare":[{"key":"YQ==", "target":
"MOD", "modRevision":"0"}], "success":[{"requestPut":{"key":"YQ==", "value":"MQ=="}}]},
with "failure" beside, and keys and values in base64.

The first line says which list was applied: SUCCESS or FAILURE.

Exit codes: 0 applied, whichever list it was; 1 failed; 2 not a transaction;
5 refused by a guard.`

func newTxnCmd(t *tree) *cobra.Command {
	var interactive bool
	cmd := &cobra.Command{
		Use:     "txn [options]",
		Short:   "Txn processes all the requests in one transaction",
		Long:    t.long(txnUpstreamHelp, txnHelp),
		GroupID: groupKV,
		RunE:    t.run(func(ctx context.Context, args []string) error { return runTxn(ctx, t, args, interactive) }),
	}
	cmd.Flags().BoolVarP(&interactive, "interactive", "i", false, "Input transaction in interactive mode")
	return t.offer(cmd, output.Fields, output.Protobuf)
}

func runTxn(ctx context.Context, t *tree, args []string, interactive bool) error {
	if len(args) != 0 {
		return badArgs("txn command does not accept argument")
	}
	client, err := t.client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	tx, err := t.readTxn(ctx, interactive)
	if err != nil {
		return err
	}
	if !t.upstream() {
		if err := t.guard(ctx, client, true, slices.Concat(tx.success, tx.failure)...); err != nil {
			return err
		}
	}
	ctx, cancel := t.nativeTimeout(ctx)
	defer cancel()
	resp, err := client.Txn(ctx).If(tx.compares...).Then(tx.success...).Else(tx.failure...).Commit()
	if err != nil {
		return err
	}
	return t.print(t.txnResult((*pb.TxnResponse)(resp)))
}

// transaction is what standard input asks for.
type transaction struct {
	compares         []clientv3.Cmp
	success, failure []clientv3.Op
}

func (t *tree) readTxn(ctx context.Context, interactive bool) (tx transaction, err error) {
	prompt := func(text string) {
		if interactive {
			fmt.Fprintln(t.Out, text)
		}
	}
	in := bufio.NewReader(t.Input())
	if !t.upstream() && !interactive {
		if first, err := in.Peek(1); err == nil && first[0] == '{' { // no condition begins so
			return readTxnJSON(in)
		}
	}
	parser := &txnParser{t: t, in: in}
	prompt("compares:")
	if tx.compares, err = parser.compares(); err != nil {
		return tx, err
	}
	prompt("success requests (get, put, del):")
	if tx.success, err = parser.ops(ctx); err != nil {
		return tx, err
	}
	prompt("failure requests (get, put, del):")
	tx.failure, err = parser.ops(ctx)
	return tx, err
}

func (t *tree) txnResult(r *pb.TxnResponse) result {
	v := t.kvView()
	return result{
		json: newTxnJSON(r), proto: r,
		simple: func(w io.Writer) { v.txnSimple(w, r) },
		exact:  true,
		fields: func(w io.Writer) { v.txnFields(w, r) },
	}
}

func (v kvView) txnSimple(w io.Writer, r *pb.TxnResponse) {
	verdict := "FAILURE"
	if r.GetSucceeded() {
		verdict = "SUCCESS"
	}
	fmt.Fprintln(w, verdict)
	for _, op := range r.GetResponses() {
		fmt.Fprintln(w)
		switch {
		case op.GetResponseDeleteRange() != nil:
			v.delSimple(w, op.GetResponseDeleteRange())
		case op.GetResponsePut() != nil:
			v.putSimple(w, op.GetResponsePut())
		case op.GetResponseRange() != nil:
			v.getSimple(w, op.GetResponseRange())
		default:
			fmt.Fprintf(w, "unexpected response %+v\n", op)
		}
	}
}

func (v kvView) txnFields(w io.Writer, r *pb.TxnResponse) {
	v.header(w, r.GetHeader())
	fmt.Fprintln(w, `"Succeeded" :`, r.GetSucceeded())
	for _, op := range r.GetResponses() {
		switch {
		case op.GetResponseDeleteRange() != nil:
			v.delFields(w, op.GetResponseDeleteRange())
		case op.GetResponsePut() != nil:
			v.putFields(w, op.GetResponsePut())
		case op.GetResponseRange() != nil:
			v.getFields(w, op.GetResponseRange())
		default:
			fmt.Fprintf(w, "\"Unknown\" : %q\n", fmt.Sprintf("%+v", op.GetResponse()))
		}
	}
}

// txnJSON is a transaction's response as upstream encodes it: the parts of the
// oneof by name.
type txnJSON struct {
	Header    *pb.ResponseHeader `json:"header,omitempty"`
	Succeeded bool               `json:"succeeded,omitempty"`
	Responses []txnOpJSON        `json:"responses,omitempty"`
}

type txnOpJSON struct {
	Response struct {
		Range       *pb.RangeResponse       `json:"response_range,omitempty"`
		Put         *pb.PutResponse         `json:"response_put,omitempty"`
		DeleteRange *pb.DeleteRangeResponse `json:"response_delete_range,omitempty"`
		Txn         *txnJSON                `json:"response_txn,omitempty"`
	}
}

func newTxnJSON(r *pb.TxnResponse) *txnJSON {
	all := &txnJSON{Header: r.GetHeader(), Succeeded: r.GetSucceeded()}
	for _, op := range r.GetResponses() {
		var one txnOpJSON
		one.Response.Range = op.GetResponseRange()
		one.Response.Put = op.GetResponsePut()
		one.Response.DeleteRange = op.GetResponseDeleteRange()
		if nested := op.GetResponseTxn(); nested != nil {
			one.Response.Txn = newTxnJSON(nested)
		}
		all.Responses = append(all.Responses, one)
	}
	return all
}

// errInput is for what cannot be read as a transaction.
func errInput(err error) error { return &codeError{exitInvalidInput, err} }
