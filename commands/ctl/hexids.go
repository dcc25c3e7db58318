package ctl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/etcdkit/etcdkit/internal/output"
)

// object is a JSON object that keeps the order of its fields.
type object []field

type field struct {
	name  string
	value any
}

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	b := bytes.NewBufferString("{")
	for i, f := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(f.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(f.value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// withHexIDs returns v as encoding/json would show it, with every 64-bit id a
// second time in hexadecimal: JavaScript and jq round the number.
func withHexIDs(v any) (any, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("print json: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	return decodeOrdered(dec)
}

// decodeOrdered reads one value.
func decodeOrdered(dec *json.Decoder) (any, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		return decodeObject(dec)
	case json.Delim('['):
		return decodeArray(dec)
	}
	return token, nil
}

func decodeObject(dec *json.Decoder) (any, error) {
	all := object{}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		value, err := decodeOrdered(dec)
		if err != nil {
			return nil, err
		}
		text, ok := name.(string)
		if !ok {
			return nil, io.ErrUnexpectedEOF
		}
		all = append(all, field{text, value})
		if number, ok := value.(json.Number); ok && isID(text) {
			all = append(all, field{text + "_hex", hexNumber(number)})
		}
	}
	_, err := dec.Token() // the closing brace
	return all, err
}

func decodeArray(dec *json.Decoder) (any, error) {
	all := []any{}
	for dec.More() {
		value, err := decodeOrdered(dec)
		if err != nil {
			return nil, err
		}
		all = append(all, value)
	}
	_, err := dec.Token() // the closing bracket
	return all, err
}

// isID reports whether a field of etcd's responses holds a 64-bit id.
func isID(field string) bool {
	switch field {
	case "cluster_id", "member_id", "memberID", "ID", "id", "leader", "lease":
		return true
	}
	return false
}

// hexNumber writes an id in hexadecimal. Lease ids are signed.
func hexNumber(n json.Number) string {
	if u, err := strconv.ParseUint(n.String(), 10, 64); err == nil {
		return output.ID(u)
	}
	i, _ := n.Int64()
	return output.ID(uint64(i))
}
