package mvccdb

import "hash/maphash"

// Keys maps the keys of users to numbers, in slots of 16 bytes of which up to
// three quarters are taken: it keeps a hash of 96 random bits in place of each
// key. Two of a billion keys fall together once in ten billion tries.
type Keys struct {
	seeds [2]maphash.Seed
	slots []keySlot
	links []uint32 // a second value of each slot; nil where nobody uses it
	count int
}

// KeyID stands for a key in one Keys.
type KeyID struct {
	high uint64
	low  uint32
}

// keySlot has the parts of a KeyID in fields of its own: a KeyID inside would
// be padded, and make a slot half as large again.
type keySlot struct {
	high       uint64
	low, value uint32
}

func (s *keySlot) free() bool        { return s.high == 0 && s.low == 0 }
func (s *keySlot) has(id KeyID) bool { return s.high == id.high && s.low == id.low }

const firstSlots = 1 << 10

// NewKeys returns an empty table.
func NewKeys() *Keys {
	return &Keys{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, slots: make([]keySlot, firstSlots)}
}

// ID returns what stands for key. It may be called on all cores at once, also
// while another one uses Set.
func (k *Keys) ID(key []byte) KeyID {
	id := KeyID{high: maphash.Bytes(k.seeds[0], key), low: uint32(maphash.Bytes(k.seeds[1], key))}
	if id == (KeyID{}) {
		id.low = 1 // the zero value marks a free slot
	}
	return id
}

// Len returns the number of keys.
func (k *Keys) Len() int { return k.count }

// Set gives a key a value and returns the one it had.
func (k *Keys) Set(id KeyID, value uint32) (before uint32, known bool) {
	before, known, _ = k.set(id, value)
	return before, known
}

// set is Set, and returns the key's place among the slots.
func (k *Keys) set(id KeyID, value uint32) (before uint32, known bool, at uint64) {
	if k.count >= len(k.slots)/4*3 {
		k.grow()
	}
	at = k.find(id)
	s := &k.slots[at]
	before, known = s.value, s.has(id)
	*s = keySlot{high: id.high, low: id.low, value: value}
	if !known {
		k.count++
	}
	return before, known, at
}

// Get returns the value of a key.
func (k *Keys) Get(id KeyID) (value uint32, known bool) {
	s := &k.slots[k.find(id)]
	return s.value, s.has(id)
}

// find returns the place of a key's slot, or of the free one that it would get.
func (k *Keys) find(id KeyID) uint64 {
	mask := uint64(len(k.slots) - 1)
	for i := id.high & mask; ; i = (i + 1) & mask {
		if s := &k.slots[i]; s.has(id) || s.free() {
			return i
		}
	}
}

func (k *Keys) grow() {
	old, links := k.slots, k.links
	k.slots = make([]keySlot, 2*len(old))
	if links != nil {
		k.links = make([]uint32, 2*len(old))
	}
	for i, s := range old {
		if s.free() {
			continue
		}
		at := k.find(KeyID{s.high, s.low})
		k.slots[at] = s
		if links != nil {
			k.links[at] = links[i]
		}
	}
}
