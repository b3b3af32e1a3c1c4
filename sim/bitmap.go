package main

import (
	"math/bits"
	"slices"
)

// A bitmap is an array of bits, rounded up to whole words.
type bitmap []uint64

func newBitmap(m uint64) bitmap { return make(bitmap, (m+63)/64) }

// emptied is an empty one of m bits, in the place of b if that has room.
func (b bitmap) emptied(m uint64) bitmap {
	if n := (m + 63) / 64; uint64(cap(b)) >= n {
		b = b[:n]
		clear(b)
		return b
	}
	return newBitmap(m)
}

func (b bitmap) set(positions ...uint64) {
	for _, p := range positions {
		b[p/64] |= 1 << (p % 64)
	}
}

func (b bitmap) has(p uint64) bool { return b[p/64]>>(p%64)&1 != 0 }

func (b bitmap) hasAll(positions []uint64) bool {
	return !slices.ContainsFunc(positions, func(p uint64) bool { return !b.has(p) })
}

// ones is how many bits are set.
func (b bitmap) ones() uint32 {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return uint32(n)
}
