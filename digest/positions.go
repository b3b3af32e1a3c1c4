package digest

import "math/bits"

// doubleHashing is the one scheme by which a key becomes positions: double hashing modulo 2^64 and
// reduction by multiplication, high((h+i·d)·m) for the key h, with d odd and derived from it (Kirsch and
// Mitzenmacher 2006; no division, and no prime m). With m even, half a position is the key's position in
// a filter of m/2 bits. The other schemes of the source documents were no better; see sim/HISTORY.md.
const doubleHashing = 1

// single returns the position of a key if there is one hash.
func (g *Geometry) single(k Key) uint64 { return high(uint64(k), g.Bits) }

// AppendPositions appends to dst the key's positions, 1 to g.Hashes of them, each
// below g.Bits and none twice, in no order. g must be valid.
func (g Geometry) AppendPositions(dst []uint64, k Key) []uint64 {
	if err := g.validate(); err != nil {
		panic("digest: positions without a geometry: use GeometryFor or that of a filter: " + err.Error())
	}
	var buf [maxHashes]uint64
	return append(dst, g.positions(&buf, k)...)
}

// positions fills buf with the key's distinct positions and returns them. A position that comes
// twice counts once. So a counter says how many keys have its position, and removing a key
// exactly undoes its addition.
func (g *Geometry) positions(buf *[maxHashes]uint64, k Key) []uint64 {
	all := g.draws(buf, k)
	n := 1
next:
	for _, p := range all[1:] {
		for _, q := range all[:n] {
			if p == q {
				continue next
			}
		}
		all[n] = p
		n++
	}
	return all[:n]
}

// draws fills buf with the key's k positions, repetitions included.
func (g *Geometry) draws(buf *[maxHashes]uint64, k Key) []uint64 {
	all := buf[:g.Hashes]
	for i, h, d := 0, uint64(k), k.Stride(); i < len(all); i++ {
		all[i] = high(h, g.Bits)
		h += d
	}
	return all
}

// Stride returns the second hash of double hashing: the positions of k are those of k, k+Stride, k+2·Stride and so on, modulo 2^64, in a geometry of one
// hash. It is odd, so that the sequence does not return to its start.
func (k Key) Stride() uint64 { return mix(uint64(k)+golden) | 1 }

func high(a, b uint64) uint64 {
	h, _ := bits.Mul64(a, b)
	return h
}
