package index

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/summarycache/summarycache/digest"
)

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x5ca1ab1e)) }

func randomKeys(r *rand.Rand, n int) []digest.Key {
	keys := make([]digest.Key, n)
	for i := range keys {
		keys[i] = digest.Key(r.Uint64())
	}
	return keys
}

func counting(t testing.TB, g digest.Geometry, keys ...digest.Key) *digest.CountingFilter {
	t.Helper()
	c, err := digest.NewCountingFilter(g, 7)
	if err != nil {
		t.Fatalf("NewCountingFilter(%v) = %v", g, err)
	}
	for _, k := range keys {
		c.Add(k)
	}
	return c
}

// filterOf makes a filter of keys.
func filterOf(t testing.TB, g digest.Geometry, v digest.Version, keys []digest.Key) *digest.Filter {
	t.Helper()
	f, err := digest.FilterOf(g, v, slices.Values(keys))
	if err != nil {
		t.Fatalf("FilterOf(%v) = %v", g, err)
	}
	return f
}

// keysAt returns keys that have n positions on end, in [0, m) by one hash.
func keysAt(first, m uint64, n int) []digest.Key {
	keys := make([]digest.Key, n)
	for i := range keys {
		keys[i] = digest.Key(firstKey(first+uint64(i), m))
	}
	return keys
}

// geometries are dense and sparse, small and large, with one hash and many.
var geometries = []digest.Geometry{
	{Bits: 1, Hashes: 1},
	{Bits: 7, Hashes: 3},
	{Bits: 1 << 10, Hashes: 1},
	{Bits: 8_000, Hashes: 5},
	{Bits: 14_000, Hashes: 2},
	{Bits: 48_000, Hashes: 3},
	{Bits: 92_001, Hashes: 1},
	{Bits: 1_000_000, Hashes: 1},
	{Bits: 1 << 40, Hashes: 1},
	{Bits: 1<<40 - 87, Hashes: 4},
}
