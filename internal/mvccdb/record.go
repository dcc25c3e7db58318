package mvccdb

import (
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// Sizes of a key in the key bucket: main revision, '_', sub revision, and for
// a deletion a mark.
const (
	revisionSize  = 8 + 1 + 8
	tombstoneSize = revisionSize + 1
)

// Revision orders all changes: Main counts transactions, Sub the changes in
// one.
type Revision struct {
	Main, Sub int64
}

// before reports whether r is earlier than other.
func (r Revision) before(other Revision) bool {
	return r.Main < other.Main || (r.Main == other.Main && r.Sub < other.Sub)
}

// Record is one revision of the key bucket: a key's value or its deletion.
type Record struct {
	Element
	Rev       Revision
	Tombstone bool // the key was deleted; only Rev and Key are set

	Key, Value     []byte // of the user, unlike Element's
	CreateRevision int64
	ModRevision    int64
	Version        int64
	Lease          int64
}

// place returns where the record stands.
func (r *Record) place() place { return place{rev: r.Rev, page: r.Page, offset: r.Offset} }

// ParseRevision reads a key of the key bucket.
func ParseRevision(b []byte) (rev Revision, tombstone bool, err error) {
	switch {
	case len(b) != revisionSize && len(b) != tombstoneSize:
		return rev, false, fmt.Errorf("revision key %s has %d bytes, want %d or %d", show(b), len(b), revisionSize, tombstoneSize)
	case b[8] != '_':
		return rev, false, fmt.Errorf("revision key %s has no '_' in the middle", show(b))
	case len(b) == tombstoneSize && b[revisionSize] != 't':
		return rev, false, fmt.Errorf("revision key %s ends with neither a revision nor the mark of a deletion", show(b))
	}
	rev = Revision{Main: int64(binary.BigEndian.Uint64(b)), Sub: int64(binary.BigEndian.Uint64(b[9:]))}
	if rev.Main < 0 || rev.Sub < 0 {
		return rev, false, fmt.Errorf("revision key %s is negative", show(b))
	}
	return rev, len(b) == tombstoneSize, nil
}

// Fields of mvccpb.KeyValue.
const (
	fieldKey protowire.Number = iota + 1
	fieldCreateRevision
	fieldModRevision
	fieldVersion
	fieldValue
	fieldLease
)

// DecodeRecord decodes an element of the key bucket. The result shares its
// memory. It takes exactly what etcd writes: known fields in order, each once,
// in the shortest form, and none that is zero. One changed bit can turn a field
// into another one, and etcd would read the record without its key or value.
func DecodeRecord(e Element) (Record, error) {
	r := Record{Element: e}
	var err error
	if r.Rev, r.Tombstone, err = ParseRevision(e.RawKey); err != nil {
		return r, err
	}
	if err := r.decodeFields(e.RawValue); err != nil {
		return r, fmt.Errorf("the value of revision %d/%d cannot be decoded: %w", r.Rev.Main, r.Rev.Sub, err)
	}
	if err := r.check(); err != nil {
		return r, fmt.Errorf("revision %d/%d %w", r.Rev.Main, r.Rev.Sub, err)
	}
	return r, nil
}

func (r *Record) decodeFields(b []byte) error {
	var last protowire.Number
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		switch {
		case n < 0:
			return protowire.ParseError(n)
		case num > fieldLease:
			return fmt.Errorf("it has a field %d, which etcd never writes%s", num, r.missing(last))
		case num <= last || n > 1:
			return fmt.Errorf("field %d stands in the wrong place%s", num, r.missing(last))
		}
		m, err := r.decodeField(num, typ, b[n:])
		if err != nil {
			return err
		}
		b, last = b[n+m:], num
	}
	return nil
}

// missing says that the key was not seen before the fault after field last.
func (r *Record) missing(last protowire.Number) string {
	if last < fieldKey {
		return ": the record has no key"
	}
	return ""
}

// decodeField decodes the content of a field at the beginning of b and returns
// its length.
func (r *Record) decodeField(num protowire.Number, typ protowire.Type, b []byte) (int, error) {
	want, n, shortest := protowire.VarintType, 0, 0
	switch num {
	case fieldKey, fieldValue:
		want = protowire.BytesType
	}
	if typ != want {
		return 0, fmt.Errorf("field %d has type %d, want %d", num, typ, want)
	}
	if typ == protowire.BytesType {
		var v []byte
		if v, n = protowire.ConsumeBytes(b); n >= 0 {
			shortest = protowire.SizeBytes(len(v))
			r.setBytes(num, v)
		}
	} else {
		var v uint64
		if v, n = protowire.ConsumeVarint(b); n >= 0 {
			shortest = protowire.SizeVarint(v)
			r.setNumber(num, int64(v))
		}
	}
	switch {
	case n < 0:
		return 0, protowire.ParseError(n)
	case n != shortest:
		return 0, fmt.Errorf("field %d has a number that is longer than it needs to be", num)
	case n == 1 && b[0] == 0:
		return 0, fmt.Errorf("field %d is empty, which etcd leaves out", num)
	}
	return n, nil
}

func (r *Record) setBytes(num protowire.Number, v []byte) {
	if num == fieldKey {
		r.Key = v
	} else {
		r.Value = v
	}
}

// check tells what contradicts itself in a decoded record, as what is said of
// its revision.
func (r *Record) check() error {
	switch {
	case r.Tombstone && len(r.Key) == 0:
		return errors.New("deletes a key without a name")
	case r.Tombstone && (r.ModRevision != 0 || r.CreateRevision != 0 || r.Version != 0 || r.Lease != 0 || len(r.Value) > 0):
		return errors.New("is a deletion with a value")
	case r.Tombstone || len(r.RawValue) == 0: // a restore with a bumped revision leaves an empty record at the new one
		return nil
	case len(r.Key) == 0:
		return errors.New("has no key")
	case r.ModRevision != r.Rev.Main:
		return fmt.Errorf("holds a value of revision %d", r.ModRevision)
	case r.CreateRevision < 1 || r.CreateRevision > r.ModRevision:
		return fmt.Errorf("holds a key that was created at revision %d", r.CreateRevision)
	case r.Version < 1, r.Version == 1 && r.CreateRevision != r.ModRevision:
		return fmt.Errorf("holds version %d of a key that was created at revision %d", r.Version, r.CreateRevision)
	}
	return nil
}

func (r *Record) setNumber(num protowire.Number, v int64) {
	switch num {
	case fieldCreateRevision:
		r.CreateRevision = v
	case fieldModRevision:
		r.ModRevision = v
	case fieldVersion:
		r.Version = v
	case fieldLease:
		r.Lease = v
	}
}
