package mvccdb_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/etcdkit/etcdkit/internal/mvccdb"
)

const flips = 1000

// recordFlips are fewer: the records are checked by one function.
const recordFlips = 150

func TestEveryBitFlipInASnapshotIsFound(t *testing.T) {
	t.Parallel()
	good := kubernetes(t)
	r := rand.New(rand.NewPCG(1, 1))
	for range flips {
		bit := r.IntN(len(good) * 8)
		bad := bytes.Clone(good)
		bad[bit/8] ^= 1 << (bit % 8)
		if !found(t, bad) {
			t.Errorf("bit %d of byte %d: the damage is not found", bit%8, bit/8)
		}
	}
}

// With a SHA-256 made over the damage only the structure can tell. What is in
// values and in unused pages cannot be found then, by nobody.
func TestEveryBitFlipInTheStructureIsFoundWithoutTheHash(t *testing.T) {
	t.Parallel()
	good := kubernetes(t)
	structure := structureOf(t, good)
	r := rand.New(rand.NewPCG(2, 2))
	try := func(at, bit int) {
		bad := bytes.Clone(good)
		bad[at] ^= 1 << bit
		if f := found(t, sealed(bad)); !f && structure[at] {
			t.Errorf("bit %d of byte %d (page %d): the structure changed, and nothing is found", bit, at, at/pageSize)
		}
	}
	for range flips { // anywhere
		try(r.IntN(len(good)-sha256.Size), r.IntN(8))
	}
	var places []int
	for at, is := range structure {
		if is {
			places = append(places, at)
		}
	}
	for range flips { // in the structure
		try(places[r.IntN(len(places))], r.IntN(8))
	}
	t.Logf("%d of %d bytes are structure", len(places), len(good))
}

// structureOf marks the bytes of page headers, element headers, branch keys,
// revision keys and meta pages, by reading the file in its own way.
func structureOf(t *testing.T, b []byte) []bool {
	t.Helper()
	m := &marker{b: b, structure: make([]bool, len(b))}
	m.mark(0, 80)
	m.mark(pageSize, 80)
	root := binary.LittleEndian.Uint64(b[16+16:])
	if second := b[pageSize:]; binary.LittleEndian.Uint64(second[16+48:]) > binary.LittleEndian.Uint64(b[16+48:]) {
		root = binary.LittleEndian.Uint64(second[16+16:])
	}
	m.page(int(root)*pageSize, "")
	return m.structure
}

type marker struct {
	b         []byte
	structure []bool
}

func (m *marker) mark(at, n int) {
	for i := range n {
		m.structure[at+i] = true
	}
}

func (m *marker) u32(at int) int { return int(binary.LittleEndian.Uint32(m.b[at:])) }

// page marks the page at an offset and what is below; bucket is "" for the
// root, whose values are the buckets.
func (m *marker) page(at int, bucket string) {
	m.mark(at, 16)
	count := int(binary.LittleEndian.Uint16(m.b[at+10:]))
	for i := range count {
		e := at + 16 + 16*i
		m.mark(e, 16)
		if m.b[at+8] == 1 { // branch
			m.mark(e+m.u32(e), m.u32(e+4))
			m.page(int(binary.LittleEndian.Uint64(m.b[e+8:]))*pageSize, bucket)
			continue
		}
		key, ksize := e+m.u32(e+4), m.u32(e+8)
		switch bucket {
		case "":
			name, value := string(m.b[key:key+ksize]), key+ksize
			m.mark(value, 16)
			if below := binary.LittleEndian.Uint64(m.b[value:]); below == 0 {
				m.page(value+16, name)
			} else {
				m.page(int(below)*pageSize, name)
			}
		case mvccdb.KeyBucket:
			m.mark(key, ksize)
		}
	}
}
