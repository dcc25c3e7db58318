package sample

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// namespaces is how many there are.
const namespaces = 20

// firstCreation is when the oldest object was made.
const firstCreation = 1767225600 // 2026-01-01

type generator struct {
	rand *rand.Rand
	keys []Key
}

// meta is an object's metadata.
type meta struct {
	name, namespace, uid string
	created              int64 // seconds since 1970
}

func (g *generator) object(k kind, i int) (Object, error) {
	m := meta{
		name:    fmt.Sprintf("%s-%d-%s", k.path[len(k.path)-4:], i, g.word(5)),
		uid:     g.uid(),
		created: firstCreation + int64(g.rand.IntN(300*86400)),
	}
	key := Prefix + "/" + k.path + "/"
	if k.namespaced {
		m.namespace = fmt.Sprintf("team-%d", g.rand.IntN(namespaces))
		key += m.namespace + "/"
	}
	o := Object{Key: key + m.name}
	switch {
	case k.json:
		value, err := g.customResource(k, m)
		o.Value = value
		return o, err
	case k.name == "Secret":
		return g.secret(o, k, m, i)
	}
	o.Value = envelope(k, message(m.encode(), g.filler(k.valueBytes)))
	return o, nil
}

// secret returns a Secret: one in three in clear, the others by the keys in
// turn.
func (g *generator) secret(o Object, k kind, m meta, i int) (Object, error) {
	var entry []byte
	entry = appendString(entry, 1, "password")
	entry = appendString(entry, 2, g.word(24))
	raw := appendBytes(nil, 1, m.encode())
	raw = appendBytes(raw, 2, entry)
	raw = appendString(raw, 3, "Opaque")
	o.Value = envelope(k, raw)
	if i%3 == 0 {
		return o, nil
	}
	key := g.keys[i/3%len(g.keys)]
	sealed, err := key.Seal([]byte(o.Key), o.Value, g.rand)
	if err != nil {
		return o, err
	}
	o.Value, o.Encryption = sealed, key.Provider
	return o, nil
}

func (g *generator) customResource(k kind, m meta) ([]byte, error) {
	b, err := json.Marshal(map[string]any{
		"apiVersion": k.apiVersion, "kind": k.name,
		"metadata": map[string]any{
			"name": m.name, "namespace": m.namespace, "uid": m.uid,
			"creationTimestamp": time.Unix(m.created, 0).UTC().Format(time.RFC3339),
		},
		"spec": map[string]any{"size": g.rand.IntN(100), "note": g.word(k.valueBytes)},
	})
	if err != nil {
		return nil, fmt.Errorf("make sample object: %w", err)
	}
	return append(b, '\n'), nil
}

// envelope is how Kubernetes stores protobuf: a magic number, then a
// runtime.Unknown with the type and the object.
func envelope(k kind, raw []byte) []byte {
	typeMeta := appendString(appendString(nil, 1, k.apiVersion), 2, k.name)
	b := appendBytes([]byte("k8s\x00"), 1, typeMeta)
	b = appendBytes(b, 2, raw)
	b = appendString(b, 3, "")
	return appendString(b, 4, "")
}

// message is an object of metadata and a spec.
func message(meta, spec []byte) []byte {
	return appendBytes(appendBytes(nil, 1, meta), 2, spec)
}

// encode returns the metadata as an ObjectMeta message.
func (m meta) encode() []byte {
	b := appendString(nil, 1, m.name)
	b = appendString(b, 2, "")
	b = appendString(b, 3, m.namespace)
	b = appendString(b, 5, m.uid)
	created := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(m.created))
	b = appendBytes(b, 8, created)
	label := appendString(appendString(nil, 1, "app.kubernetes.io/name"), 2, m.name)
	return appendBytes(b, 11, label)
}

func appendString(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

func appendBytes(b []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

// filler stands for a spec: one string field of about n bytes.
func (g *generator) filler(n int) []byte {
	return appendString(nil, 1, g.word(n/2+g.rand.IntN(n+1)))
}

func (g *generator) word(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[g.rand.IntN(len(letters))]
	}
	return string(b)
}

func (g *generator) uid() string {
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x",
		g.rand.Uint32(), g.rand.IntN(1<<16), g.rand.IntN(1<<12), g.rand.IntN(1<<12), g.rand.Int64N(1<<48))
}
