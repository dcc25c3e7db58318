package secrets

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// entry takes a raft entry: its index, and the puts in its request. What
// cannot be decoded is no request of etcd v3.
func (w *walLog) entry(b []byte) error {
	var index uint64
	var data []byte
	_ = eachField(b, func(num protowire.Number, v uint64, content []byte) error {
		switch num {
		case 3:
			index = v
		case 4:
			data = content
		}
		return nil
	})
	return w.request(index, data, 4, 6, 0)
}

// request looks for puts in a request, whose fields put and txn differ
// between the whole request and an operation of a transaction.
func (w *walLog) request(index uint64, b []byte, put, txn protowire.Number, depth int) error {
	if depth > maxTxn {
		return nil
	}
	err := eachField(b, func(num protowire.Number, _ uint64, content []byte) error {
		switch num {
		case put:
			return w.putRequest(index, content)
		case txn:
			return stop(eachField(content, func(num protowire.Number, _ uint64, op []byte) error {
				if num != 2 && num != 3 { // what to do on success and on failure
					return nil
				}
				return w.request(index, op, 2, 4, depth+1)
			}))
		}
		return nil
	})
	return stop(err)
}

func (w *walLog) putRequest(index uint64, b []byte) error {
	p := walPut{index: index, complete: true}
	err := eachField(b, func(num protowire.Number, _ uint64, content []byte) error {
		switch num {
		case 1:
			p.key = content
		case 2:
			p.value = content
		}
		return nil
	})
	if err != nil || len(p.key) == 0 || len(p.value) == 0 {
		return nil // no put after all
	}
	return w.put(p)
}

// errMessage says that bytes are no protobuf message.
var errMessage = errors.New("not a protobuf message")

// stop drops errMessage: what is no message holds nothing.
func stop(err error) error {
	if errors.Is(err, errMessage) {
		return nil
	}
	return err
}

// eachField visits the numbers and the contents of a message.
func eachField(b []byte, visit func(num protowire.Number, v uint64, content []byte) error) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errMessage
		}
		b = b[n:]
		var v uint64
		var content []byte
		switch typ {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			content, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(num, typ, b)
		}
		if n < 0 {
			return errMessage
		}
		if err := visit(num, v, content); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}
