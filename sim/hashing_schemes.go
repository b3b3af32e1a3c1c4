package main

import (
	"crypto/md5"
	"encoding/binary"
	"math/big"
	"math/bits"

	"github.com/summarycache/summarycache/digest"
)

// A hashScheme turns a key into k positions in [0, m).
type hashScheme struct {
	name string
	// fit returns the array size nearest to m, from above, that the scheme can use;
	// nil means any.
	fit    func(m uint64, k int) uint64
	digest digest.Scheme // if package digest has it; if not, 0, and then
	// formula stores the positions of a key in out. It gets the name, and the name's 64-bit
	// hash.
	formula func(out []uint64, name []byte, key, m uint64)
	most    int // the largest k; 0 for any
}

// hashSchemes are the schemes of the documents, and their forms in practice. All except the
// last start from one good 64-bit hash.
var hashSchemes = []hashScheme{
	{name: "independent hashes", digest: digest.Independent},
	{name: "double, mod 2^64 (ours)", digest: digest.Double},
	{name: "enhanced double, mod m", digest: digest.EnhancedDouble},
	{name: "double, mod m", formula: doubleModulo},
	{name: "double, mod m prime", fit: func(m uint64, _ int) uint64 { return nextPrime(m) }, formula: doubleModulo},
	{name: "double, mod m = 2^j", fit: func(m uint64, _ int) uint64 { return 1 << bits.Len64(m-1) }, formula: doubleModulo},
	{name: "partitioned, independent", digest: digest.Partitioned,
		fit: func(m uint64, k int) uint64 { return (m + uint64(k) - 1) / uint64(k) * uint64(k) }},
	{name: "partitioned, two mod prime", digest: digest.TwoModPrime,
		fit: func(m uint64, k int) uint64 { return uint64(k) * nextPrime(m/uint64(k)) }},
	{name: "MD5's four words mod m", most: 4, formula: func(out []uint64, name []byte, _, m uint64) {
		sum := md5.Sum(name)
		for i := range out {
			out[i] = uint64(binary.LittleEndian.Uint32(sum[4*i:])) % m
		}
	}},
}

// positions returns the key's positions. It stores them in buf, which has room for k.
func (s hashScheme) positions(buf []uint64, name []byte, key, m uint64) []uint64 {
	if s.formula == nil {
		return digest.Geometry{Bits: m, Hashes: cap(buf), Scheme: s.digest}.AppendPositions(buf[:0], digest.Key(key))
	}
	buf = buf[:cap(buf)]
	s.formula(buf, name, key, m)
	return buf
}

// doubleModulo is h1 + i·h2 mod m with both hashes uniform in [0, m): the form in
// which the lecture, Spyropoulos, and Kirsch and Mitzenmacher write it.
func doubleModulo(out []uint64, _ []byte, key, m uint64) {
	x, y := high(key, m), high(mix64(key+golden64), m)
	for i := range out {
		out[i] = x
		x = (x + y) % m
	}
}

func high(a, b uint64) uint64 {
	h, _ := bits.Mul64(a, b)
	return h
}

// nextPrime returns the least prime that is at least m.
func nextPrime(m uint64) uint64 {
	for ; !new(big.Int).SetUint64(m).ProbablyPrime(0); m++ {
	}
	return m
}
