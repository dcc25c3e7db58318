package mvccdb

import "hash/crc32"

// castagnoli is the polynomial of etcd's hashes, reversed as in hash/crc32.
const castagnoli = crc32.Castagnoli

// crcTable returns the table for it. hash/crc32 makes it once.
func crcTable() *crc32.Table { return crc32.MakeTable(castagnoli) }

// segment is the CRC of a piece of data and its length. Segments can be made
// on all cores and joined afterwards.
type segment struct {
	crc uint32
	len int64
}

// add appends data.
func (s *segment) add(b []byte) {
	s.crc = crc32.Update(s.crc, crcTable(), b)
	s.len += int64(len(b))
}

// join appends a segment.
func (s *segment) join(next segment) {
	s.crc = multiply(power(next.len), s.crc) ^ next.crc
	s.len += next.len
}

// A CRC is the remainder of the data, taken as a polynomial over GF(2), so
// that putting n bytes behind some data multiplies its remainder by x^(8n).
// Bit 31 is the coefficient of x^0.

// multiply multiplies two polynomials modulo the CRC's.
func multiply(a, b uint32) uint32 {
	var product uint32
	for ; a != 0; a <<= 1 {
		if a&(1<<31) != 0 {
			product ^= b
		}
		b = b>>1 ^ castagnoli&-(b&1)
	}
	return product
}

// power returns x^(8n).
func power(n int64) uint32 {
	result, square := uint32(1)<<31, uint32(1)<<(31-8)
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			result = multiply(square, result)
		}
		square = multiply(square, square)
	}
	return result
}

// joiner joins many short segments, of which most have one of a few lengths.
type joiner struct {
	segment
	powers map[int64]uint32
}

func (j *joiner) join(next segment) {
	p, ok := j.powers[next.len]
	if !ok {
		if j.powers == nil || len(j.powers) > 1<<16 {
			j.powers = make(map[int64]uint32)
		}
		p = power(next.len)
		j.powers[next.len] = p
	}
	j.crc = multiply(p, j.crc) ^ next.crc
	j.len += next.len
}
