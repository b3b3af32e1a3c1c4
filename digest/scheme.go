package digest

import (
	"fmt"
	"math/bits"
)

// A Scheme turns a key into positions.
type Scheme uint8

// Double is double hashing modulo 2^64 and reduction by multiplication: the i-th
// position is the upper half of (h + i·d)·m (Kirsch and Mitzenmacher 2006; no
// division, and no prime m). With m even, half a position is the key's position
// in a filter of m/2, so that folding is exact.
const Double Scheme = 1

func (s Scheme) String() string {
	if s == Double {
		return "double"
	}
	return fmt.Sprintf("scheme(%d)", uint8(s))
}

func (s Scheme) validate(Geometry) error {
	if s != Double {
		return fmt.Errorf("digest: scheme %d: %w: unknown", uint8(s), ErrGeometry)
	}
	return nil
}

func (s Scheme) partitioned() bool { return false }

// folds reports whether half a position is the position in a filter of half the
// size.
func (s Scheme) folds() bool { return s == Double }

// simple reports whether the first position is [Geometry.first].
func (g *Geometry) simple() bool { return g.scheme() == Double }

func (g Geometry) scheme() Scheme {
	if g.Scheme == 0 {
		return Double
	}
	return g.Scheme
}

// first is the first position of a key: with one hash, the only one.
func (g *Geometry) first(k Key) uint64 {
	p, _ := bits.Mul64(uint64(k), g.Bits)
	return p
}

// positions fills buf with the key's distinct positions and returns how many
// there are. A position that comes twice counts once: a counter then says how
// many keys stand on it, and removing a key undoes exactly what adding it did.
func (g *Geometry) positions(buf *[MaxHashes]uint64, k Key) []uint64 {
	buf[0] = g.first(k)
	n := 1
	h, d := uint64(k), stride(k)
next:
	for i := 1; i < g.Hashes; i++ {
		h += d
		p, _ := bits.Mul64(h, g.Bits)
		for _, q := range buf[:n] {
			if p == q {
				continue next
			}
		}
		buf[n] = p
		n++
	}
	return buf[:n]
}

// stride is the second hash of double hashing. It is odd, so that the sequence
// does not return to its start.
func stride(k Key) uint64 { return mix(uint64(k)+golden) | 1 }
