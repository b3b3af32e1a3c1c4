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
	fit func(m uint64, k int) uint64
	// positions fills out with the positions of a key: its name, and the name's
	// 64-bit hash.
	positions func(out []uint64, name []byte, key, m uint64)
	// digest is the scheme of package digest that does the same, or 0.
	digest digest.Scheme
	most   int // the largest k; 0 for any
}

// hashSchemes are those of the documents, and those that practice made of them.
// All but the last start from one good 64-bit hash.
var hashSchemes = []hashScheme{
	{name: "independent hashes", digest: 3, positions: func(out []uint64, _ []byte, key, m uint64) {
		out[0] = high(key, m)
		for i := range out[1:] {
			out[i+1] = high(mix64(key+uint64(i+1)*golden64), m)
		}
	}},
	{name: "double, mod 2^64 (ours)", digest: 1, positions: func(out []uint64, _ []byte, key, m uint64) {
		step := mix64(key+golden64) | 1
		for i := range out {
			out[i] = high(key, m)
			key += step
		}
	}},
	{name: "enhanced double, mod m", digest: 2, positions: func(out []uint64, _ []byte, key, m uint64) {
		x, y := high(key, m), high(mix64(key+golden64), m)
		for i := range out {
			out[i] = x
			x = (x + y) % m
			y = (y + uint64(i) + 1) % m
		}
	}},
	{name: "double, mod m", positions: doubleModulo},
	{name: "double, mod m prime", fit: func(m uint64, _ int) uint64 { return nextPrime(m) }, positions: doubleModulo},
	{name: "double, mod m = 2^j", fit: func(m uint64, _ int) uint64 { return 1 << bits.Len64(m-1) }, positions: doubleModulo},
	{name: "partitioned, independent", digest: 4, fit: multiple, positions: func(out []uint64, _ []byte, key, m uint64) {
		part := m / uint64(len(out))
		out[0] = high(key, part)
		for i := range out[1:] {
			out[i+1] = uint64(i+1)*part + high(mix64(key+uint64(i+1)*golden64), part)
		}
	}},
	{name: "partitioned, two mod prime", digest: 5,
		fit: func(m uint64, k int) uint64 { return uint64(k) * nextPrime(m/uint64(k)) },
		positions: func(out []uint64, _ []byte, key, m uint64) {
			part := m / uint64(len(out))
			x, y := high(key, part), high(mix64(key+golden64), part)
			for i := range out {
				out[i] = uint64(i)*part + x
				x = (x + y) % part
			}
		}},
	{name: "MD5's four words mod m", most: 4, positions: func(out []uint64, name []byte, _, m uint64) {
		sum := md5.Sum(name)
		for i := range out {
			out[i] = uint64(binary.LittleEndian.Uint32(sum[4*i:])) % m
		}
	}},
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

// nextPrime is the least prime that is m or above.
func nextPrime(m uint64) uint64 {
	for ; !new(big.Int).SetUint64(m).ProbablyPrime(0); m++ {
	}
	return m
}

// multiple is the least multiple of k that is m or above.
func multiple(m uint64, k int) uint64 { return (m + uint64(k) - 1) / uint64(k) * uint64(k) }
