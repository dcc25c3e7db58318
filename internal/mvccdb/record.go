package mvccdb

import (
	"encoding/binary"
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
// memory.
func DecodeRecord(e Element) (Record, error) {
	r := Record{Element: e}
	var err error
	if r.Rev, r.Tombstone, err = ParseRevision(e.RawKey); err != nil {
		return r, err
	}
	for b := e.RawValue; len(b) > 0; {
		n := r.decodeField(b)
		if n < 0 {
			return r, fmt.Errorf("the value of revision %d/%d cannot be decoded: %w", r.Rev.Main, r.Rev.Sub, protowire.ParseError(n))
		}
		b = b[n:]
	}
	// A restore with a bumped revision leaves an empty record at the new one.
	if !r.Tombstone && len(e.RawValue) > 0 && r.ModRevision != r.Rev.Main {
		return r, fmt.Errorf("revision %d/%d holds a value of revision %d", r.Rev.Main, r.Rev.Sub, r.ModRevision)
	}
	return r, nil
}

// decodeField decodes the field at the beginning of b and returns its length,
// or a negative number that protowire.ParseError explains.
func (r *Record) decodeField(b []byte) int {
	num, typ, n := protowire.ConsumeTag(b)
	if n < 0 {
		return n
	}
	known := num >= fieldKey && num <= fieldLease
	switch {
	case known && typ == protowire.BytesType:
		v, m := protowire.ConsumeBytes(b[n:])
		if m < 0 {
			return m
		}
		switch num {
		case fieldKey:
			r.Key = v
		case fieldValue:
			r.Value = v
		}
		return n + m
	case known && typ == protowire.VarintType:
		v, m := protowire.ConsumeVarint(b[n:])
		if m < 0 {
			return m
		}
		r.setNumber(num, int64(v))
		return n + m
	}
	m := protowire.ConsumeFieldValue(num, typ, b[n:])
	if m < 0 {
		return m
	}
	return n + m
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
