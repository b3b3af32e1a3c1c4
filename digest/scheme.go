package digest

import (
	"fmt"
	"math/big"
	"math/bits"
)

// A Scheme turns a key into positions. [Double] is the one to use; the others are
// those of the source documents, kept to be compared with it. With one hash all
// are the same.
type Scheme uint8

// The values are those on the wire. Below, h is the key, d is derived from it, and high is the
// upper half of a product of 128 bits.
const (
	// Double is double hashing modulo 2^64 and reduction by multiplication: high((h+i·d)·m),
	// with d odd (Kirsch and Mitzenmacher 2006; no division, and no prime m). With m even, half
	// a position is the key's position in a filter of m/2 bits.
	Double Scheme = 1
	// EnhancedDouble is x+i·y+(i³-i)/6 modulo m, with x and y uniform in [0, m)
	// (Dillinger and Manolios 2004).
	EnhancedDouble Scheme = 2
	// Independent takes a hash of its own for each position, as the papers'
	// analyses assume.
	Independent Scheme = 3
	// Partitioned takes a hash of its own for each of k parts of m/k positions
	// (lecture notes, section 5). m must be a multiple of k.
	Partitioned Scheme = 4
	// TwoModPrime is x+i·y modulo p in the i-th of k parts, with p = m/k prime and
	// x and y uniform in [0, p) (lecture notes, section 6).
	TwoModPrime Scheme = 5

	lastScheme = TwoModPrime
)

var schemeNames = [...]string{"unknown", "double", "enhanced-double", "independent", "partitioned", "two-mod-prime"}

func (s Scheme) String() string {
	if s > lastScheme {
		return fmt.Sprintf("scheme(%d)", uint8(s))
	}
	return schemeNames[s]
}

// validate checks g, whose bits and hashes must be in range.
func (s Scheme) validate(g Geometry) error {
	switch {
	case s < Double || s > lastScheme:
		return fmt.Errorf("digest: scheme %d: %w: unknown", uint8(s), ErrGeometry)
	case s.parted() && g.Bits%uint64(g.Hashes) != 0:
		return fmt.Errorf("digest: scheme %v: %w: %d bits are no multiple of %d hashes", s, ErrGeometry, g.Bits, g.Hashes)
	case s == TwoModPrime && !new(big.Int).SetUint64(g.Bits/uint64(g.Hashes)).ProbablyPrime(0):
		return fmt.Errorf("digest: scheme %v: %w: %d bits are no prime times %d hashes", s, ErrGeometry, g.Bits, g.Hashes)
	}
	return nil
}

// parted reports whether each hash has a part of the positions to itself.
func (s Scheme) parted() bool { return s == Partitioned || s == TwoModPrime }

func (g Geometry) scheme() Scheme {
	if g.Scheme == 0 {
		return Double
	}
	return g.Scheme
}

// single returns the position of a key if there is one hash.
func (g *Geometry) single(k Key) uint64 { return high(uint64(k), g.Bits) }

// AppendPositions appends to dst the key's positions, 1 to g.Hashes of them, each
// below g.Bits and none twice, in no order. g must be valid: see [Geometry.Validate].
func (g Geometry) AppendPositions(dst []uint64, k Key) []uint64 {
	var buf [MaxHashes]uint64
	return append(dst, g.positions(&buf, k)...)
}

// positions fills buf with the key's distinct positions and returns them. A position that comes
// twice counts once. So a counter says how many keys have its position, and removing a key
// exactly undoes its addition.
func (g *Geometry) positions(buf *[MaxHashes]uint64, k Key) []uint64 {
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
func (g *Geometry) draws(buf *[MaxHashes]uint64, k Key) []uint64 {
	h, all := uint64(k), buf[:g.Hashes]
	switch g.scheme() {
	case Double:
		for i, d := 0, k.Stride(); i < len(all); i++ {
			all[i] = high(h, g.Bits)
			h += d
		}
	case EnhancedDouble:
		x, y := high(h, g.Bits), high(mix(h+golden), g.Bits)
		for i := range all {
			all[i] = x
			x = (x + y) % g.Bits
			y = (y + uint64(i) + 1) % g.Bits
		}
	case Independent:
		all[0] = high(h, g.Bits)
		for i := range all[1:] {
			h += golden
			all[i+1] = high(mix(h), g.Bits)
		}
	case Partitioned:
		part := g.Bits / uint64(g.Hashes)
		all[0] = high(h, part)
		for i := range all[1:] {
			h += golden
			all[i+1] = uint64(i+1)*part + high(mix(h), part)
		}
	case TwoModPrime:
		part := g.Bits / uint64(g.Hashes)
		x, y := high(h, part), high(mix(h+golden), part)
		for i := range all {
			all[i] = uint64(i)*part + x
			x = (x + y) % part
		}
	}
	return all
}

// Stride returns the second hash of double hashing: the positions of k under [Double]
// are those of k, k+Stride, k+2·Stride and so on, modulo 2^64, in a geometry of one
// hash. It is odd, so that the sequence does not return to its start.
func (k Key) Stride() uint64 { return mix(uint64(k)+golden) | 1 }

func high(a, b uint64) uint64 {
	h, _ := bits.Mul64(a, b)
	return h
}
