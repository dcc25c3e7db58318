package ctl

import (
	"errors"
	"fmt"
	"io"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/encoding/protojson"
)

// maxTxnJSON is far above what a server takes (1.5 MiB by default), in base64.
const maxTxnJSON = 64 << 20

// readTxnJSON reads a transaction as etcd's JSON gateway takes it: a TxnRequest
// with keys and values in base64.
func readTxnJSON(in io.Reader) (transaction, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxTxnJSON))
	if err != nil {
		return transaction{}, err
	}
	var req pb.TxnRequest
	if err := protojson.Unmarshal(text, &req); err != nil {
		return transaction{}, errInput(fmt.Errorf("read a transaction in JSON: %w", err))
	}
	var tx transaction
	for i, c := range req.GetCompare() {
		cmp, err := compareOf(c)
		if err != nil {
			return tx, errInput(fmt.Errorf("compare[%d]: %w", i, err))
		}
		tx.compares = append(tx.compares, cmp)
	}
	if tx.success, err = opsOf("success", req.GetSuccess()); err != nil {
		return tx, errInput(err)
	}
	if tx.failure, err = opsOf("failure", req.GetFailure()); err != nil {
		return tx, errInput(err)
	}
	return tx, nil
}

func compareOf(c *pb.Compare) (clientv3.Cmp, error) {
	signs := map[pb.Compare_CompareResult]string{
		pb.Compare_EQUAL: "=", pb.Compare_NOT_EQUAL: "!=", pb.Compare_GREATER: ">", pb.Compare_LESS: "<",
	}
	sign, key := signs[c.GetResult()], string(c.GetKey())
	if sign == "" || key == "" {
		return clientv3.Cmp{}, errors.New("no key, or no known result")
	}
	var cmp clientv3.Cmp
	var target pb.Compare_CompareTarget // that fits what it is compared with
	switch want := c.GetTargetUnion().(type) {
	case *pb.Compare_Version:
		cmp, target = clientv3.Compare(clientv3.Version(key), sign, want.Version), pb.Compare_VERSION
	case *pb.Compare_CreateRevision:
		cmp, target = clientv3.Compare(clientv3.CreateRevision(key), sign, want.CreateRevision), pb.Compare_CREATE
	case *pb.Compare_ModRevision:
		cmp, target = clientv3.Compare(clientv3.ModRevision(key), sign, want.ModRevision), pb.Compare_MOD
	case *pb.Compare_Value:
		cmp, target = clientv3.Compare(clientv3.Value(key), sign, string(want.Value)), pb.Compare_VALUE
	case *pb.Compare_Lease:
		cmp, target = clientv3.Compare(clientv3.LeaseValue(key), sign, want.Lease), pb.Compare_LEASE
	default:
		return cmp, errors.New("nothing to compare with: it needs version, createRevision, modRevision, value or lease")
	}
	if c.GetTarget() != target {
		return cmp, fmt.Errorf("target %s does not fit what it is compared with", c.GetTarget())
	}
	if end := c.GetRangeEnd(); len(end) > 0 {
		cmp = cmp.WithRange(string(end))
	}
	return cmp, nil
}

func opsOf(list string, requests []*pb.RequestOp) ([]clientv3.Op, error) {
	var ops []clientv3.Op
	for i, r := range requests {
		switch {
		case r.GetRequestPut() != nil:
			ops = append(ops, putOf(r.GetRequestPut()))
		case r.GetRequestDeleteRange() != nil:
			ops = append(ops, deletionOf(r.GetRequestDeleteRange()))
		case r.GetRequestRange() != nil:
			ops = append(ops, rangeOf(r.GetRequestRange()))
		default:
			return nil, fmt.Errorf("%s[%d]: not a requestPut, requestDeleteRange or requestRange", list, i)
		}
	}
	return ops, nil
}

func putOf(r *pb.PutRequest) clientv3.Op {
	opts := []clientv3.OpOption{clientv3.WithLease(clientv3.LeaseID(r.GetLease()))}
	if r.GetPrevKv() {
		opts = append(opts, clientv3.WithPrevKV())
	}
	if r.GetIgnoreValue() {
		opts = append(opts, clientv3.WithIgnoreValue())
	}
	if r.GetIgnoreLease() {
		opts = append(opts, clientv3.WithIgnoreLease())
	}
	return clientv3.OpPut(string(r.GetKey()), string(r.GetValue()), opts...)
}

func deletionOf(r *pb.DeleteRangeRequest) clientv3.Op {
	var opts []clientv3.OpOption
	if end := r.GetRangeEnd(); len(end) > 0 {
		opts = append(opts, clientv3.WithRange(string(end)))
	}
	if r.GetPrevKv() {
		opts = append(opts, clientv3.WithPrevKV())
	}
	return clientv3.OpDelete(string(r.GetKey()), opts...)
}

func rangeOf(r *pb.RangeRequest) clientv3.Op {
	opts := []clientv3.OpOption{
		clientv3.WithLimit(r.GetLimit()), clientv3.WithRev(r.GetRevision()),
		clientv3.WithSort(clientv3.SortTarget(r.GetSortTarget()), clientv3.SortOrder(r.GetSortOrder())),
		clientv3.WithMinModRev(r.GetMinModRevision()), clientv3.WithMaxModRev(r.GetMaxModRevision()),
		clientv3.WithMinCreateRev(r.GetMinCreateRevision()), clientv3.WithMaxCreateRev(r.GetMaxCreateRevision()),
	}
	if end := r.GetRangeEnd(); len(end) > 0 {
		opts = append(opts, clientv3.WithRange(string(end)))
	}
	if r.GetSerializable() {
		opts = append(opts, clientv3.WithSerializable())
	}
	if r.GetKeysOnly() {
		opts = append(opts, clientv3.WithKeysOnly())
	}
	if r.GetCountOnly() {
		opts = append(opts, clientv3.WithCountOnly())
	}
	return clientv3.OpGet(string(r.GetKey()), opts...)
}
