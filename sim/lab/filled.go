package lab

import (
	"math/bits"
	"math/rand/v2"

	"github.com/summarycache/summarycache/digest"
)

func RandomKeys(rng rand.Source, n int) []digest.Key {
	keys := make([]digest.Key, n)
	for i := range keys {
		keys[i] = digest.Key(rng.Uint64())
	}
	return keys
}

// Filled returns a publisher of n random keys, the keys, and the filter that it published.
func Filled(g digest.Geometry, rng rand.Source, n int) (held *digest.CountingFilter, keys []digest.Key, base *digest.Filter, err error) {
	if held, err = digest.NewCountingFilter(g, 1); err != nil {
		return nil, nil, nil, err
	}
	keys = RandomKeys(rng, n)
	for _, k := range keys {
		held.Add(k)
	}
	return held, keys, held.Advance(), nil
}

// ReplaceKeys replaces each key by a random one.
func ReplaceKeys(held *digest.CountingFilter, rng rand.Source, keys []digest.Key) {
	for i, k := range keys {
		held.Remove(k)
		keys[i] = digest.Key(rng.Uint64())
		held.Add(keys[i])
	}
}

// A Bitmap is an array of bits, rounded up to whole words.
type Bitmap []uint64

func NewBitmap(m uint64) Bitmap { return make(Bitmap, (m+63)/64) }

func (b Bitmap) Set(positions ...uint64) {
	for _, p := range positions {
		b[p/64] |= 1 << (p % 64)
	}
}

func (b Bitmap) Has(p uint64) bool { return b[p/64]>>(p%64)&1 != 0 }

// Ones returns how many bits are set.
func (b Bitmap) Ones() uint32 {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return uint32(n)
}
