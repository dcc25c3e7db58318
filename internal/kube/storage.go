package kube

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// Format is how the API server encoded a stored object.
type Format uint8

// The formats there are. Anything that is none of the others is Unknown; it
// is never taken for encrypted.
const (
	Unknown Format = iota
	Protobuf
	JSON
	CBOR
	Encrypted
)

// String is the format's name.
func (f Format) String() string {
	switch f {
	case Protobuf:
		return "protobuf"
	case JSON:
		return "json"
	case CBOR:
		return "cbor"
	case Encrypted:
		return "encrypted"
	default:
		return "unknown"
	}
}

// Plain reports whether anybody who has the bytes can read the object.
func (f Format) Plain() bool { return f == Protobuf || f == JSON || f == CBOR }

const (
	protobufMagic  = "k8s\x00"
	encryptedMagic = "k8s:enc:"
	cborMagic      = "\xd9\xd9\xf7" // the tag of self-described CBOR

	maxName  = 253  // of a key or a provider in the configuration
	maxKeyID = 1024 // the API server takes no longer one from a plugin
)

// Storage tells how one value is stored. It holds names only, nothing of the
// object.
type Storage struct {
	Format Format
	// Provider is "aescbc", "aesgcm", "secretbox", "kms:v1:NAME" or
	// "kms:v2:NAME"; "" for what is not encrypted.
	Provider string
	// Key is the name of the key, or the id that the key management service
	// gave it. It is "" for KMS v1, which stores none, and where it cannot be
	// told where the name ends.
	Key string
	// Cut says that the format is Unknown only because the value's end is missing.
	Cut bool
}

// Classify tells how a whole value is stored. It looks at the beginning of the
// value, for KMS v2 at the fields around the encrypted data, and whether what is
// encrypted is long enough for its cipher.
func Classify(value []byte) Storage { return (*EncryptionConfig)(nil).Classify(value, true) }

// Classify tells how a value is stored. The names of c's keys, which may hold
// colons, are recognized first; c may be nil. complete is false where the
// value's end is missing.
func (c *EncryptionConfig) Classify(value []byte, complete bool) Storage {
	switch {
	case bytes.HasPrefix(value, []byte(protobufMagic)):
		return Storage{Format: Protobuf}
	case bytes.HasPrefix(value, []byte(encryptedMagic)):
		s, _ := c.split(value, complete)
		return s
	case bytes.HasPrefix(value, []byte(cborMagic)):
		return Storage{Format: CBOR}
	case isJSON(value):
		return Storage{Format: JSON}
	}
	return Storage{Cut: !complete && mayBegin(value)}
}

// mayBegin reports whether value is the beginning of a mark.
func mayBegin(value []byte) bool {
	for _, magic := range []string{protobufMagic, encryptedMagic, cborMagic} {
		if bytes.HasPrefix([]byte(magic), value) {
			return true
		}
	}
	value = trimSpace(value)
	return len(value) == 0 || len(value) == 1 && value[0] == '{'
}

// isStorage reports whether value begins as only an API server's values do.
func isStorage(value []byte) bool {
	return bytes.HasPrefix(value, []byte(protobufMagic)) || bytes.HasPrefix(value, []byte(encryptedMagic))
}

// isStorageJSON reports whether value looks like an object in JSON, which API
// servers can be told to store. Other programs write JSON as well.
func isStorageJSON(value []byte) bool {
	const head = 512 // kind and apiVersion come first
	value = value[:min(len(value), head)]
	return len(value) > 1 && value[0] == '{' && bytes.Contains(value, []byte(`"kind"`)) && bytes.Contains(value, []byte(`"apiVersion"`))
}

// isJSON reports whether value is an object in JSON as an API server reads it:
// white space and a byte order mark may stand before it.
func isJSON(value []byte) bool {
	value = trimSpace(value)
	if len(value) < 2 || value[0] != '{' {
		return false
	}
	rest := trimSpace(value[1:])
	return len(rest) > 0 && (rest[0] == '"' || rest[0] == '}')
}

// trimSpace removes white space and byte order marks from the beginning.
func trimSpace(b []byte) []byte {
	return bytes.TrimLeftFunc(b, func(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' })
}

// envelope is what KMS v2 stores around an object. Its slices are parts of
// the value it was read from.
type envelope struct {
	data        []byte // encrypted by the data encryption key
	keyID       string // of the key encryption key
	dek         []byte // the data encryption key or its seed, encrypted by the plugin
	annotations [][]byte
	seed        bool // dek is a seed from which each object's key is derived
}

// parseEnvelope reads the protobuf message that follows the prefix of KMS v2.
func parseEnvelope(b []byte) (envelope, error) {
	var e envelope
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return envelope{}, errEnvelope
		}
		b = b[n:]
		n = protowire.ConsumeFieldValue(num, typ, b)
		if n < 0 {
			return envelope{}, errEnvelope
		}
		if err := e.set(num, typ, b[:n]); err != nil {
			return envelope{}, err
		}
		b = b[n:]
	}
	if e.keyID == "" || len(e.data) == 0 || len(e.dek) == 0 {
		return envelope{}, errEnvelope
	}
	return e, nil
}

// set takes over one field; field holds its encoded value.
func (e *envelope) set(num protowire.Number, typ protowire.Type, field []byte) error {
	if num == 5 && typ == protowire.VarintType {
		v, _ := protowire.ConsumeVarint(field)
		e.seed = v == 1
		if v > 1 {
			return errEnvelope
		}
		return nil
	}
	if num < 1 || num > 4 {
		return nil // a later API server may add fields
	}
	if typ != protowire.BytesType {
		return errEnvelope
	}
	content, _ := protowire.ConsumeBytes(field)
	switch num {
	case 1:
		e.data = content
	case 2:
		if len(content) > maxKeyID || !utf8.Valid(content) || bytes.IndexFunc(content, isControl) >= 0 {
			return errEnvelope
		}
		e.keyID = string(content)
	case 3:
		e.dek = content
	case 4:
		e.annotations = append(e.annotations, content)
	}
	return nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// ProtobufName reads the namespace and the name from the metadata of an object
// stored as protobuf. They are "" where they cannot be read, or are no names.
func ProtobufName(value []byte) (namespace, name string) {
	if !bytes.HasPrefix(value, []byte(protobufMagic)) {
		return "", ""
	}
	raw := firstField(value[len(protobufMagic):], 2) // runtime.Unknown.raw
	meta := firstField(raw, 1)                       // metadata, in every kind
	ns, n := firstField(meta, 3), firstField(meta, 1)
	if !isName(n) || len(ns) > 0 && !isName(ns) {
		return "", ""
	}
	return string(ns), string(n)
}

// firstField returns the content of the first length-delimited field num, as
// far as the message goes: the end may be missing.
func firstField(message []byte, num protowire.Number) []byte {
	for len(message) > 0 {
		n, typ, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return nil
		}
		message = message[tag:]
		if n == num && typ == protowire.BytesType {
			size, m := protowire.ConsumeVarint(message)
			if m < 0 {
				return nil
			}
			message = message[m:]
			return message[:min(size, uint64(len(message)))]
		}
		size := protowire.ConsumeFieldValue(n, typ, message)
		if size < 0 {
			return nil
		}
		message = message[size:]
	}
	return nil
}

// isName reports whether b can be the name of a namespace or a Secret: a DNS
// name. Nothing else is shown, because the bytes may be anything.
func isName(b []byte) bool {
	for _, c := range b {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '.' {
			return false
		}
	}
	return len(b) > 0 && len(b) <= maxName
}
